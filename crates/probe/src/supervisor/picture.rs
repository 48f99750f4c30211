//! Merge of the reports of all probe processes of a backend into one state.

use std::{collections::BTreeMap, sync::Arc};

use model::{Backend, CardRef, Device, Phase, StuckCall};

use super::{
    process::Role,
    stuck::{CallScope, StuckCalls},
};
use crate::{
    protocol::{ProblemKind, Report},
    sighting::{BackendState, ReleaseStatus, Releases},
};

/// Reports of all probe processes of a backend, and the rest of the state to publish.
#[derive(Debug)]
pub(super) struct ReportMerger {
    name: String,
    main: Option<SharedReport>,
    /// Reports of processes that try a single card. Kept until the main process reports the card
    /// again.
    solo: BTreeMap<CardRef, SharedReport>,
    /// Calls that take long enough to be logged and shown.
    slow: Vec<StuckCall>,
    /// Reason why the state is not current.
    pub(super) unwatched: Option<String>,
    /// True if every card is released.
    pub(super) held: bool,
    last: Option<BackendState>,
    /// True if the next report of the main process is published even if nothing changed.
    expected: bool,
}

/// Report with its devices behind `Arc`: publishing a state does not copy them.
#[derive(Debug)]
struct SharedReport {
    /// Report without its devices.
    report: Report,
    devices: Vec<Arc<Device>>,
}

// === impl ReportMerger ===

impl ReportMerger {
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

    /// Adds a report in place of the last one of this role.
    pub(super) fn add_report(&mut self, role: Role, report: Report) {
        match role {
            Role::Main => {
                self.unwatched = None;
                // Without a last state the next one always counts as changed.
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

    /// Sets the slow calls. Returns the ones that are new.
    pub(super) fn set_slow_calls(&mut self, slow: Vec<StuckCall>) -> Vec<StuckCall> {
        let new = slow.iter().filter(|call| !self.slow.contains(call));
        let new = new.cloned().collect();
        self.slow = slow;
        new
    }

    /// Publishes the next report of the main process even if nothing changed: a refresh waits for
    /// it.
    pub(super) fn expect(&mut self) {
        self.expected = true;
    }

    /// Returns the state if it differs from the last one that was returned.
    pub(super) fn take_changed(
        &mut self,
        ledger: &StuckCalls,
        released: Releases,
    ) -> Option<BackendState> {
        let sighting = self.build_state(ledger, released);
        if self.last.as_ref() == Some(&sighting) {
            return None;
        }
        self.last = Some(sighting.clone());
        Some(sighting)
    }

    fn build_state(&self, ledger: &StuckCalls, released: Releases) -> BackendState {
        let stuck: BTreeMap<_, _> = ledger
            .list_stuck_cards()
            .map(|(card, call)| (card, call.clone()))
            .collect();
        let slow_driver = self
            .slow
            .iter()
            .find(|call| CallScope::of_call(call) == CallScope::Driver);
        BackendState {
            backend: self.build_backend(ledger, &released),
            devices: self.merge_devices(&stuck, &released),
            stuck,
            driver_stuck: ledger
                .stuck_call(CallScope::Driver)
                .or(slow_driver)
                .cloned(),
            unwatched: self.unwatched.clone(),
            released,
        }
    }

    /// Lists every device once. The main process takes precedence over processes of single cards.
    fn merge_devices(
        &self,
        stuck: &BTreeMap<CardRef, StuckCall>,
        released: &Releases,
    ) -> Vec<Arc<Device>> {
        let mut devices: Vec<Arc<Device>> = Vec::new();
        for report in self.main.iter().chain(self.solo.values()) {
            for device in &report.devices {
                let known = devices.iter().any(|known| known.id == device.id);
                let left_out = stuck.keys().any(|card| card.covers(device))
                    || released.find_release(device).is_some();
                if !known && !left_out {
                    devices.push(Arc::clone(device));
                }
            }
        }
        devices
    }

    fn build_backend(&self, ledger: &StuckCalls, released: &Releases) -> Backend {
        let mut stuck: Vec<_> = ledger.list_stuck_calls().cloned().collect();
        for call in &self.slow {
            if !stuck.contains(call) {
                stuck.push(call.clone());
            }
        }
        let problem = self
            .main
            .as_ref()
            .and_then(|main| main.report.problem.as_ref());
        let driver_stuck = stuck
            .iter()
            .find(|c| CallScope::of_call(c) == CallScope::Driver);
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
    fn released_phase(&self, release: &ReleaseStatus) -> (Phase, String) {
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

/// Describes a stuck call in a sentence.
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
