//! What all processes of a backend see, put together.

use std::{collections::BTreeMap, sync::Arc};

use model::{Backend, CardRef, Device, Phase, StuckCall};

use super::{
    process::Role,
    stuck::{Concern, Ledger},
};
use crate::{
    protocol::{ProblemKind, Report},
    sighting::{Release, Released, Sighting},
};

/// The reports of all processes of a backend.
#[derive(Debug)]
pub(super) struct Picture {
    name: String,
    main: Option<SharedReport>,
    /// Of cards that are tried alone, or were until the main process reported them again.
    solo: BTreeMap<CardRef, SharedReport>,
    /// Calls that take so long that a person should know.
    slow: Vec<StuckCall>,
    /// Why the picture is not current.
    pub(super) unwatched: Option<String>,
    /// Whether nothing may be looked at.
    pub(super) held: bool,
    last: Option<Sighting>,
    /// Whether the next report is passed on even if nothing changed.
    expected: bool,
}

/// A report whose devices are shared with everybody who hears of them.
#[derive(Debug)]
struct SharedReport {
    /// The report, without its devices.
    report: Report,
    devices: Vec<Arc<Device>>,
}

// === impl Picture ===

impl Picture {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            main: None,
            solo: BTreeMap::new(),
            slow: Vec::new(),
            unwatched: None,
            held: false,
            last: None,
            expected: false,
        }
    }

    /// Takes in a report.
    pub(super) fn report(&mut self, role: Role, report: Report) {
        match role {
            Role::Main => {
                self.unwatched = None;
                if std::mem::take(&mut self.expected) {
                    self.last = None;
                }
                self.solo.retain(|card, _| report.skipped.contains(card));
                self.main = Some(SharedReport::new(report));
            }
            Role::Solo(card) => {
                self.solo.insert(card, SharedReport::new(report));
            }
        }
    }

    /// Sets the calls that take too long; returns those that did not before.
    pub(super) fn name(&mut self, slow: Vec<StuckCall>) -> Vec<StuckCall> {
        let new = slow.iter().filter(|call| !self.slow.contains(call));
        let new = new.cloned().collect();
        self.slow = slow;
        new
    }

    /// Somebody waits for the next report: it is passed on whatever it says.
    pub(super) fn expect(&mut self) {
        self.expected = true;
    }

    /// The whole picture, if it is not the one that was taken last.
    pub(super) fn changed(&mut self, ledger: &Ledger, released: Released) -> Option<Sighting> {
        let sighting = self.sighting(ledger, released);
        if self.last.as_ref() == Some(&sighting) {
            return None;
        }
        self.last = Some(sighting.clone());
        Some(sighting)
    }

    fn sighting(&self, ledger: &Ledger, released: Released) -> Sighting {
        let stuck: BTreeMap<_, _> = ledger
            .cards()
            .map(|(card, call)| (card, call.clone()))
            .collect();
        let slow_driver = self
            .slow
            .iter()
            .find(|call| Concern::of(call) == Concern::Driver);
        Sighting {
            backend: self.backend(ledger, &released),
            devices: self.devices(&stuck, &released),
            stuck,
            driver_stuck: ledger.stuck(Concern::Driver).or(slow_driver).cloned(),
            unwatched: self.unwatched.clone(),
            released,
        }
    }

    /// Every device once; a card that is tried alone counts only when the main process has it not.
    fn devices(
        &self,
        stuck: &BTreeMap<CardRef, StuckCall>,
        released: &Released,
    ) -> Vec<Arc<Device>> {
        let mut devices: Vec<Arc<Device>> = Vec::new();
        for report in self.main.iter().chain(self.solo.values()) {
            for device in &report.devices {
                let known = devices.iter().any(|known| known.id == device.id);
                let left_out =
                    stuck.keys().any(|card| card.covers(device)) || released.of(device).is_some();
                if !known && !left_out {
                    devices.push(Arc::clone(device));
                }
            }
        }
        devices
    }

    fn backend(&self, ledger: &Ledger, released: &Released) -> Backend {
        let mut stuck: Vec<_> = ledger.calls().cloned().collect();
        for call in &self.slow {
            if !stuck.contains(call) {
                stuck.push(call.clone());
            }
        }
        let problem = self
            .main
            .as_ref()
            .and_then(|main| main.report.problem.as_ref());
        let driver_stuck = stuck.iter().find(|c| Concern::of(c) == Concern::Driver);
        let (phase, message) = if let Some(call) = driver_stuck {
            (Phase::DriverFailed, hung(call))
        } else if let Some(release) = &released.all
            && (self.main.is_some() || self.held)
        {
            self.released_phase(release)
        } else if let Some(why) = &self.unwatched {
            (Phase::Failing, why.clone())
        } else if let Some(problem) = problem {
            let phase = match problem.kind {
                ProblemKind::NoDriver => Phase::NoDriver,
                ProblemKind::DriverFailed => Phase::DriverFailed,
            };
            (phase, problem.message.clone())
        } else if self.main.is_some() {
            let main = self.main.iter();
            let warnings = main.flat_map(|main| main.report.warnings.clone());
            let news: Vec<_> = stuck.iter().map(hung).chain(warnings).collect();
            (Phase::Running, news.join("; "))
        } else {
            (Phase::Starting, String::new())
        };
        let all = || {
            self.main
                .iter()
                .chain(self.solo.values())
                .map(|shared| &shared.report)
        };
        Backend {
            name: self.name.clone(),
            phase,
            message,
            driver: all().find_map(|report| report.driver.clone()),
            unreadable: all().flat_map(|r| r.unreadable.clone()).collect(),
            stuck,
            extras: self
                .main
                .iter()
                .map(|main| main.report.extras.clone())
                .next()
                .unwrap_or_default(),
        }
    }

    /// Returns the phase and the message while every card is released.
    fn released_phase(&self, release: &Release) -> (Phase, String) {
        let message = if self.held {
            format!("released until {:.0}", release.until)
        } else {
            "it was released, and no probe has looked since".to_owned()
        };
        // Released since before the agent started: nothing was reported yet.
        let phase = self
            .main
            .as_ref()
            .map_or(Phase::Starting, |_| Phase::Running);
        (phase, message)
    }
}

// === impl SharedReport ===

impl SharedReport {
    fn new(mut report: Report) -> Self {
        let devices = std::mem::take(&mut report.devices);
        Self {
            report,
            devices: devices.into_iter().map(Arc::new).collect(),
        }
    }
}

/// A stuck call in a sentence.
fn hung(call: &StuckCall) -> String {
    let StuckCall {
        call,
        device,
        since,
        ..
    } = call;
    match device {
        Some(device) => format!("{call} on {device} has not returned since {since:.0}"),
        None => format!("{call} has not returned since {since:.0}"),
    }
}
