//! Events that the driver reported, and what ends them.

use config::{EventAction as Action, Weight};
use jiff::Timestamp;
use model::{Cause, CauseKind, EventCode};

use super::{DeviceRecord, MonotonicMoment};
use crate::{Check, HealthPolicy, Now, policy};

/// Limit of different events that are kept for a device, so that a probe with ever new codes fills
/// neither memory nor the state file.
const MOST: usize = 64;

/// An event that is a cause or a warning of the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedEvent {
    /// Time of the first report.
    pub(super) since: Timestamp,
    /// Time of the last report.
    pub(super) last: MonotonicMoment,
    /// True if the driver asked for a recovery action since the last report, or an operator had the
    /// device. A driver that asks for none afterwards shows that the device was reset.
    pub(super) asked: bool,
    /// True if the counters of the device were read after the last report. A reset that they show
    /// later is newer than the event.
    pub(super) counted: bool,
}

// === impl DeviceRecord ===

impl DeviceRecord {
    /// Keeps an event, unless its action is to ignore it.
    pub(super) fn keep_event(&mut self, event: EventCode, policy: &HealthPolicy, now: Now) {
        let room = self.events.len() < MOST || self.events.contains_key(&event);
        if room && event_action(&event, policy) != Action::Ignore {
            let asked = self.asked;
            let happened = self.events.entry(event).or_insert(RecordedEvent {
                since: now.wall,
                last: MonotonicMoment::new(now),
                asked,
                counted: false,
            });
            happened.last = MonotonicMoment::new(now);
            happened.asked = asked;
            happened.counted = false;
            self.unsaved = true;
        }
    }

    /// Ends all events that a reset ends.
    pub(super) fn end_events_by_reset(&mut self, policy: &HealthPolicy) {
        self.events
            .retain(|event, _| event_action(event, policy) == Action::Permanent);
    }

    /// Marks that a remedy is under way for all events.
    pub(super) fn act(&mut self) {
        self.events
            .values_mut()
            .for_each(|event| event.asked = true);
    }

    /// Takes in if the driver asks for a recovery action. If it asks for none, all events end for
    /// which it asked before, or for which an operator had the device.
    pub(super) fn set_action_asked(&mut self, asks: bool, policy: &HealthPolicy) {
        self.unsaved |= self.asked != asks;
        self.asked = asks;
        if asks {
            self.act();
            return;
        }
        self.events.retain(|event, happened| {
            !happened.asked || event_action(event, policy) == Action::Permanent
        });
    }

    /// Ends the event of uncorrected memory errors: their counter was above 0 and is 0 again.
    pub(super) fn forget_ecc(&mut self) {
        self.events.remove(&EventCode::ECC_UNCORRECTED);
    }

    /// Drops events and withholdings whose time is over.
    pub(super) fn drop_expired(&mut self, policy: &HealthPolicy, now: Now) {
        self.events
            .retain(|event, happened| !is_over(event, happened, policy, now));
        if self.residue_left(policy, now).is_none() {
            self.residue = None;
        }
    }

    /// Returns the events that count now, each as a cause with its weight.
    pub(super) fn event_causes(&self, policy: &HealthPolicy, now: Now) -> Vec<(Weight, Cause)> {
        let mut told = Vec::new();
        for (event, happened) in &self.events {
            let action = event_action(event, policy);
            let weight = event_weight(event, action, policy);
            let silent = action == Action::Ignore || weight == Weight::Off;
            if silent || is_over(event, happened, policy, now) {
                continue;
            }
            let cause = Cause {
                kind: event_cause_kind(event),
                evidence: describe_event(event, policy),
                since: happened.since,
                ends_when: ends_when(action, policy),
            };
            told.push((weight, cause));
        }
        told
    }
}

/// Returns the action for an event. An event that no vendor knows is a warning for a while.
pub(super) fn event_action(event: &EventCode, policy: &HealthPolicy) -> Action {
    if let Some(meaning) = policy.event_meaning(event) {
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
fn is_over(event: &EventCode, happened: &RecordedEvent, policy: &HealthPolicy, now: Now) -> bool {
    event_action(event, policy) == Action::Application
        && happened.last.ago(now) >= policy.health.event_warning
}

/// Returns the weight of an event: for a memory error the weight of its check, for any other by its
/// action.
fn event_weight(event: &EventCode, action: Action, policy: &HealthPolicy) -> Weight {
    if is_ecc(event) {
        policy::check_weight(policy, &Check::Ecc)
    } else if action.takes_out() {
        Weight::Out
    } else {
        Weight::Warn
    }
}

fn event_cause_kind(event: &EventCode) -> CauseKind {
    if is_ecc(event) {
        CauseKind::Ecc
    } else {
        CauseKind::Event
    }
}

fn describe_event(event: &EventCode, policy: &HealthPolicy) -> String {
    if let Some(meaning) = policy.event_meaning(event) {
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

fn ends_when(action: Action, policy: &HealthPolicy) -> String {
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
