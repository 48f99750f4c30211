//! Events that the driver reported, and what ends them.

use config::{EventAction as Action, Weight};
use jiff::Timestamp;
use model::{Cause, CauseKind, EventCode};

use super::{Moment, Record};
use crate::{Check, Now, Policy, policy};

/// Limit of different events that are kept for a device, so that a probe with ever new codes fills
/// neither memory nor the state file.
const MOST: usize = 64;

/// An event that is a cause or a warning of the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Happened {
    /// Time of the first report.
    pub(super) since: Timestamp,
    /// Time of the last report.
    pub(super) last: Moment,
    /// True if the driver asked for a recovery action since the last report, or an operator had the
    /// device. A driver that asks for none afterwards shows that the device was reset.
    pub(super) asked: bool,
    /// True if the counters of the device were read after the last report. A reset that they show
    /// later is newer than the event.
    pub(super) counted: bool,
}

// === impl Record ===

impl Record {
    /// Keeps an event, unless its action is to ignore it.
    pub(super) fn note(&mut self, event: EventCode, policy: &Policy, now: Now) {
        let room = self.events.len() < MOST || self.events.contains_key(&event);
        if room && action(&event, policy) != Action::Ignore {
            let asked = self.asked;
            let happened = self.events.entry(event).or_insert(Happened {
                since: now.wall,
                last: Moment::new(now),
                asked,
                counted: false,
            });
            happened.last = Moment::new(now);
            happened.asked = asked;
            happened.counted = false;
            self.unsaved = true;
        }
    }

    /// Ends all events that a reset ends.
    pub(super) fn reset(&mut self, policy: &Policy) {
        self.events
            .retain(|event, _| action(event, policy) == Action::Permanent);
    }

    /// Marks that a remedy is under way for all events.
    pub(super) fn act(&mut self) {
        self.events
            .values_mut()
            .for_each(|event| event.asked = true);
    }

    /// Takes in if the driver asks for a recovery action. If it asks for none, all events end for
    /// which it asked before, or for which an operator had the device.
    pub(super) fn ask(&mut self, asks: bool, policy: &Policy) {
        self.unsaved |= self.asked != asks;
        self.asked = asks;
        if asks {
            self.act();
            return;
        }
        self.events.retain(|event, happened| {
            !happened.asked || action(event, policy) == Action::Permanent
        });
    }

    /// Ends the event of uncorrected memory errors: their counter was above 0 and is 0 again.
    pub(super) fn forget_ecc(&mut self) {
        self.events.remove(&EventCode::ECC_UNCORRECTED);
    }

    /// Drops events and withholdings whose time is over.
    pub(super) fn settle(&mut self, policy: &Policy, now: Now) {
        self.events
            .retain(|event, happened| !is_over(event, happened, policy, now));
        if self.residue_left(policy, now).is_none() {
            self.residue = None;
        }
    }

    /// Returns the events that count now, each as a cause with its weight.
    pub(super) fn told(&self, policy: &Policy, now: Now) -> Vec<(Weight, Cause)> {
        let mut told = Vec::new();
        for (event, happened) in &self.events {
            let action = action(event, policy);
            let weight = weight(event, action, policy);
            let silent = action == Action::Ignore || weight == Weight::Off;
            if silent || is_over(event, happened, policy, now) {
                continue;
            }
            let cause = Cause {
                kind: kind(event),
                evidence: evidence(event, policy),
                since: happened.since,
                ends_when: ends_when(action, policy),
            };
            told.push((weight, cause));
        }
        told
    }
}

/// Returns the action for an event. An event that no vendor knows is a warning for a while.
pub(super) fn action(event: &EventCode, policy: &Policy) -> Action {
    if let Some(meaning) = policy.meaning(event) {
        return meaning.action;
    }
    if *event == EventCode::ECC_UNCORRECTED {
        Action::Reset
    } else if is_ecc(event) {
        // The rate of corrected errors has a check of its own; single ones are harmless.
        Action::Ignore
    } else {
        Action::Application
    }
}

/// True if the event ended by time alone.
fn is_over(event: &EventCode, happened: &Happened, policy: &Policy, now: Now) -> bool {
    action(event, policy) == Action::Application
        && happened.last.ago(now) >= policy.health.event_warning
}

/// Returns the weight of an event: for a memory error the weight of its check, for any other by its
/// action.
fn weight(event: &EventCode, action: Action, policy: &Policy) -> Weight {
    if is_ecc(event) {
        policy::weight(policy, &Check::Ecc)
    } else if action.takes_out() {
        Weight::Out
    } else {
        Weight::Warn
    }
}

fn kind(event: &EventCode) -> CauseKind {
    if is_ecc(event) {
        CauseKind::Ecc
    } else {
        CauseKind::Event
    }
}

fn evidence(event: &EventCode, policy: &Policy) -> String {
    if let Some(meaning) = policy.meaning(event) {
        return meaning.text;
    }
    match event.as_str() {
        "ecc:uncorrected" => "the driver told of a memory error that was not repaired".to_owned(),
        "ecc:corrected" => "the driver told of a memory error that was repaired".to_owned(),
        other => format!("the driver told of the event {other}"),
    }
}

fn is_ecc(event: &EventCode) -> bool {
    [EventCode::ECC_CORRECTED, EventCode::ECC_UNCORRECTED].contains(event)
}

fn ends_when(action: Action, policy: &Policy) -> String {
    let ends = match action {
        Action::Ignore | Action::Application => {
            let seconds = policy.health.event_warning.as_secs();
            return format!("it is not told again for {seconds} s");
        }
        Action::Reset => {
            "the card was reset: it left the driver and came back, its counters began anew, its \
             recovery action was cleared, or the driver was loaded anew"
        }
        Action::Drain => {
            "its work has ended and the card was reset: it left the driver and came back, its \
             counters began anew, its recovery action was cleared, or the driver was loaded anew"
        }
        Action::Permanent => "an operator uncordons the card, or it was replaced by another",
    };
    ends.to_owned()
}
