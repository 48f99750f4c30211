//! Deep checks: a command of the user's, run for one idle card after another.
//!
//! The command belongs to the probe's process group, so that it ends with the probe, even with one
//! that is killed, and has no handle left of a card that was released. What it leaves behind comes to
//! the probe, however it went about it, and is killed. Nothing is waited for: a process that sits in
//! the kernel does not hear that it was killed.

mod run;

use std::{collections::VecDeque, time::Duration};

use host::tree;
use model::{Deep as Outcome, DeviceId, Index, PciAddress, Reading, Values};
use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};
use tokio::time::Instant;

use self::run::Run;
use crate::protocol::{Checkup, DeepCheck};

/// Time between two looks at a running command.
const STEP: Duration = Duration::from_millis(500);

/// A new probe waits for this part of a period before its first round.
const REST: u32 = 10;

/// A card for which the command is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patient {
    /// Its id.
    pub id: DeviceId,
    /// Its PCI address, where it has one.
    pub pci: Option<PciAddress>,
    /// The driver's index, where it is known.
    pub index: Option<Index>,
}

/// The deep checks of a probe.
#[derive(Debug)]
pub(super) struct Deep {
    check: DeepCheck,
    due: Instant,
    waiting: VecDeque<Patient>,
    running: Option<Run>,
    /// Commands that were killed and are not gone yet.
    leaving: Vec<Run>,
    /// Whether what a command leaves behind comes to this process.
    adopts: bool,
    /// What commands left behind on which card: killed, and not gone yet.
    orphans: Vec<(u32, DeviceId)>,
}

// === impl Deep ===

impl Deep {
    /// The first round is due a period after the last one. It leaves the cards a rest, for a probe
    /// that is started again and again would otherwise keep them busy.
    pub(super) fn new(check: DeepCheck, now: Instant) -> Self {
        let left = check.period.saturating_sub(check.last_ago);
        Self {
            due: now + left.max(check.period / REST),
            check,
            waiting: VecDeque::new(),
            running: None,
            leaving: Vec::new(),
            adopts: false,
            orphans: Vec::new(),
        }
    }

    /// Has what commands leave behind come to this process, which starts no others.
    pub(super) fn adopting(mut self) -> Self {
        match set_child_subreaper(Some(getpid())) {
            Ok(()) => self.adopts = true,
            Err(error) => tracing::warn!(%error, "a command's orphans will not be found"),
        }
        self
    }

    /// When to come back.
    pub(super) fn next(&self, now: Instant) -> Instant {
        match self.running.is_some() || !self.waiting.is_empty() {
            true => now + STEP,
            false => self.due,
        }
    }

    /// Starts a round with `cards` if one is due and the last is over.
    pub(super) fn begin(&mut self, cards: impl FnOnce() -> Vec<Patient>, now: Instant) {
        if now >= self.due && self.running.is_none() && self.waiting.is_empty() {
            self.waiting = cards().into();
            self.due = now + self.check.period;
        }
    }

    /// Goes on with the round: what came of the command that ran. Starts the next one on a card for
    /// which `busy` has no reason against it.
    pub(super) fn go_on(
        &mut self,
        mut busy: impl FnMut(&DeviceId) -> Option<String>,
        now: Instant,
    ) -> Vec<Checkup> {
        let mut told = Vec::new();
        self.leaving.retain_mut(|run| !run.is_gone());
        self.orphans.retain(|(pid, _)| is_there(*pid));
        if let Some(mut run) = self.running.take() {
            match run.ended(self.check.limit, now) {
                Some(outcome) => {
                    told.push(checkup(run.patient.clone(), outcome));
                    self.sweep(&run);
                    self.leaving.push(run);
                }
                None => {
                    self.running = Some(run);
                    return told;
                }
            }
        }
        while self.running.is_none()
            && let Some(patient) = self.waiting.pop_front()
        {
            let not_run = match self.hindrance(&patient.id).or_else(|| busy(&patient.id)) {
                Some(reason) => format!("not run: {reason}"),
                None => match Run::start(&self.check.command, &patient, now) {
                    Ok(run) => {
                        self.running = Some(run);
                        continue;
                    }
                    Err(error) => {
                        let program = self.check.command.first().map_or("", String::as_str);
                        format!("cannot run {program}: {error}")
                    }
                },
            };
            told.push(checkup(
                patient,
                Outcome {
                    passed: None,
                    output: not_run,
                },
            ));
        }
        told
    }

    /// Ends what a command left behind. One runs at a time: whatever is below us now is of it, or of
    /// one that was killed before.
    fn sweep(&mut self, ended: &Run) {
        if !self.adopts {
            return;
        }
        for pid in tree::end_below_us() {
            let is_known = self.orphans.iter().any(|(known, _)| *known == pid);
            // Who started a process waits for it.
            let mut started = self.leaving.iter().chain([ended]);
            if !is_known && started.all(|run| run.id() != pid) && is_there(pid) {
                self.orphans.push((pid, ended.patient.id.clone()));
            }
        }
    }

    /// A process that cannot be ended keeps the next command off its card.
    fn hindrance(&mut self, card: &DeviceId) -> Option<String> {
        let mut of_card = self.leaving.iter_mut().filter(|r| r.patient.id == *card);
        let still = of_card.find_map(|run| (!run.is_gone()).then(|| run.id()));
        let mut orphans = self.orphans.iter().filter(|(_, of)| of == card);
        let still =
            still.or_else(|| orphans.find_map(|(pid, _)| is_there(*pid).then_some(*pid)))?;
        Some(format!("process {still} was killed and has not ended"))
    }
}

/// Whether a child that we did not start is still there; reaps it if it has ended.
fn is_there(pid: u32) -> bool {
    let pid = Pid::from_raw(pid.cast_signed());
    matches!(waitpid(pid, WaitOptions::NOHANG), Ok(None))
}

fn checkup(patient: Patient, outcome: Outcome) -> Checkup {
    Checkup {
        device: patient.id,
        reading: Reading {
            values: Values::Deep(outcome),
            conditions: Vec::new(),
            unsupported: Vec::new(),
            failures: Vec::new(),
        },
    }
}

#[cfg(test)]
mod tests;
