//! What the driver told of a device by itself, and what ends it.

use config::Weight;
use jiff::Timestamp;
use model::{Cause, CauseKind};

use super::{Moment, Record};
use crate::{
    Check, Event, Now, Policy, policy,
    xid::{self, Action},
};

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
    pub(super) fn note(&mut self, event: Event, policy: &Policy, now: Now) {
        let room = self.events.len() < MOST || self.events.contains_key(&event);
        if room && action(event, policy) != Action::Ignore {
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
            .retain(|event, _| action(*event, policy) == Action::Permanent);
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
            !happened.asked || action(*event, policy) == Action::Permanent
        });
    }

    /// The memory errors were counted, and are not any more.
    pub(super) fn forget_ecc(&mut self) {
        self.events.remove(&Event::EccUncorrected);
    }

    /// Drops what ended by time alone.
    pub(super) fn settle(&mut self, policy: &Policy, now: Now) {
        self.events
            .retain(|event, happened| !is_over(*event, happened, policy, now));
        if self.residue_left(policy, now).is_none() {
            self.residue = None;
        }
    }

    /// The events that count now, each with what it does.
    pub(super) fn told(&self, policy: &Policy, now: Now) -> Vec<(Weight, Cause)> {
        let mut told = Vec::new();
        for (event, happened) in &self.events {
            let action = action(*event, policy);
            let weight = weight(*event, action, policy);
            let silent = action == Action::Ignore || weight == Weight::Off;
            if silent || is_over(*event, happened, policy, now) {
                continue;
            }
            let cause = Cause {
                kind: kind(*event),
                evidence: evidence(*event),
                since: happened.since,
                ends_when: ends_when(action),
            };
            told.push((weight, cause));
        }
        told
    }
}

/// What is to be done about an event.
pub(super) fn action(event: Event, policy: &Policy) -> Action {
    match event {
        Event::Xid(number) => xid::action(&policy.xids, number),
        Event::EccUncorrected => Action::Reset,
        Event::EccCorrected => Action::Ignore,
    }
}

fn is_over(event: Event, happened: &Happened, policy: &Policy, now: Now) -> bool {
    action(event, policy) == Action::Application && happened.last.ago(now) >= xid::WARN_FOR
}

/// What an event does: an XID what its action says, a memory error what the check of them does.
fn weight(event: Event, action: Action, policy: &Policy) -> Weight {
    match event {
        Event::EccUncorrected | Event::EccCorrected => policy::weight(policy, Check::Ecc),
        Event::Xid(_) if action.takes_out() => Weight::Out,
        Event::Xid(_) => Weight::Warn,
    }
}

fn kind(event: Event) -> CauseKind {
    match event {
        Event::Xid(_) => CauseKind::Event,
        Event::EccUncorrected | Event::EccCorrected => CauseKind::Ecc,
    }
}

fn evidence(event: Event) -> String {
    match event {
        Event::Xid(number) => xid::describe(number),
        Event::EccUncorrected => "the driver told of a memory error that was not repaired".into(),
        Event::EccCorrected => "the driver told of a memory error that was repaired".into(),
    }
}

fn ends_when(action: Action) -> String {
    let ends = match action {
        Action::Ignore | Action::Application => {
            let seconds = xid::WARN_FOR.as_secs();
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
