//! What the driver told of a device by itself, and what ends it.

use config::{EventAction as Action, Weight};
use jiff::Timestamp;
use model::{Cause, CauseKind, EventCode};

use super::{Moment, Record};
use crate::{Check, Now, Policy, policy};

/// At most this many different events are kept.
const MOST: usize = 64;

/// An event that is held against the device, or a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Happened {
    /// The first time.
    pub(super) since: Timestamp,
    /// The last time.
    pub(super) last: Moment,
    /// Whether the driver asked for an action since, or an operator had the device: a driver that
    /// asks for none then says that it was reset.
    pub(super) asked: bool,
    /// True if the device's counters were read after the last time: a reset that they show is newer.
    pub(super) counted: bool,
}

// === impl Record ===

impl Record {
    /// Keeps an event, if it means anything.
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

    /// The device was reset: what that ends has ended.
    pub(super) fn reset(&mut self, policy: &Policy) {
        self.events
            .retain(|event, _| action(event, policy) == Action::Permanent);
    }

    /// Something is done about the events from now on.
    pub(super) fn act(&mut self) {
        self.events
            .values_mut()
            .for_each(|event| event.asked = true);
    }

    /// The driver asks for an action, or for none. What something was done about ends with that.
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

    /// The memory errors were counted, and are not any more.
    pub(super) fn forget_ecc(&mut self) {
        self.events.remove(&EventCode::ECC_UNCORRECTED);
    }

    /// Drops what ended by time alone.
    pub(super) fn settle(&mut self, policy: &Policy, now: Now) {
        self.events
            .retain(|event, happened| !is_over(event, happened, policy, now));
        if self.residue_left(policy, now).is_none() {
            self.residue = None;
        }
    }

    /// The events that count now, each with what it does.
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

/// The action for an event. One that nobody knows is a warning for a while.
pub(super) fn action(event: &EventCode, policy: &Policy) -> Action {
    if let Some(meaning) = policy.meaning(event) {
        return meaning.action;
    }
    if *event == EventCode::ECC_UNCORRECTED {
        Action::Reset
    } else if is_ecc(event) {
        // The rate of repaired errors is a check of its own.
        Action::Ignore
    } else {
        Action::Application
    }
}

fn is_over(event: &EventCode, happened: &Happened, policy: &Policy, now: Now) -> bool {
    action(event, policy) == Action::Application
        && happened.last.ago(now) >= policy.health.event_warning
}

/// The weight of an event: for a memory error that of its check, for any other by its action.
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
