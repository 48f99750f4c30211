//! What is known of calls that do not return, and when their cards are tried again. Pure: time is
//! an argument.

use std::{collections::BTreeMap, time::Duration};

use model::{CardRef, StuckCall, Work};
use tokio::time::Instant;

use super::Limits;
use crate::protocol::Beat;

/// What a stuck call concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Concern {
    /// One card.
    Card(CardRef),
    /// Waiting for events, which nothing else depends on.
    Events,
    /// Finding out how cards are linked, which is an improvement and never a condition.
    Links,
    /// The driver as a whole.
    Driver,
}

/// The calls under way in one process, timed by our own clock: the probe's time stamps are for
/// people, and clocks jump.
#[derive(Debug, Default)]
pub(super) struct Timing {
    first_seen: Vec<(StuckCall, Instant)>,
}

/// Everything that is stuck, and when it is tried again.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: BTreeMap<Concern, Entry>,
}

#[derive(Debug)]
struct Entry {
    call: StuckCall,
    /// Whether it is stuck now; `false` keeps the number of tries for a while.
    stuck: bool,
    tries: u32,
    next: Instant,
}

/// A probe reports only calls that took this long already.
const REPORTED_AFTER: Duration = Duration::from_secs(1);

/// After this long without trouble a concern starts with a clean slate.
const FORGIVEN: Duration = Duration::from_secs(600);

// === impl Concern ===

impl Concern {
    /// What `call` concerns.
    pub(super) fn of(call: &StuckCall) -> Self {
        match (call.work, call.device) {
            (Work::Links, _) => Self::Links,
            (_, Some(card)) => Self::Card(card),
            (Work::Events, None) => Self::Events,
            (Work::Survey | Work::Checks, None) => Self::Driver,
        }
    }

    fn limit(self, limits: &Limits) -> Duration {
        match self {
            Self::Card(_) | Self::Events | Self::Links => limits.call,
            // Starting a driver with sixteen cards asleep can take half a minute.
            Self::Driver => limits.driver_call,
        }
    }
}

// === impl Timing ===

impl Timing {
    /// Takes in a beat.
    pub(super) fn hear(&mut self, beat: &Beat, now: Instant) {
        let mut calls = Vec::with_capacity(beat.calls.len());
        for call in &beat.calls {
            let known = self.first_seen.iter().find(|(known, _)| known == call);
            calls.push((call.clone(), known.map_or(now, |(_, since)| *since)));
        }
        self.first_seen = calls;
    }

    /// Calls that have been under way for so long that a person should know.
    pub(super) fn slow(&self, limits: &Limits, now: Instant) -> impl Iterator<Item = &StuckCall> {
        self.beyond(now, |_| limits.call)
    }

    /// The first call that is beyond its limit, so that the process is given up.
    pub(super) fn stuck(&self, limits: &Limits, now: Instant) -> Option<&StuckCall> {
        self.beyond(now, |concern| concern.limit(limits)).next()
    }

    /// Any call under way, the oldest first.
    pub(super) fn any(&self) -> Option<&StuckCall> {
        self.first_seen.first().map(|(call, _)| call)
    }

    /// Starts every clock anew: nobody was looking for a while.
    pub(super) fn restart(&mut self, now: Instant) {
        for (_, seen) in &mut self.first_seen {
            *seen = now;
        }
    }

    fn beyond(
        &self,
        now: Instant,
        limit: impl Fn(Concern) -> Duration,
    ) -> impl Iterator<Item = &StuckCall> {
        self.first_seen
            .iter()
            .filter(move |(call, seen)| {
                let limit = limit(Concern::of(call)).saturating_sub(REPORTED_AFTER);
                now.duration_since(*seen) >= limit
            })
            .map(|(call, _)| call)
    }
}

// === impl Ledger ===

impl Ledger {
    /// `call` did not return: it is left out until its next try.
    pub(super) fn add(&mut self, call: StuckCall, limits: &Limits, now: Instant) {
        let concern = Concern::of(&call);
        let tries = self.entries.get(&concern).map_or(0, |entry| entry.tries);
        let entry = Entry {
            call,
            stuck: true,
            tries: tries.saturating_add(1),
            next: now + limits.pause(tries),
        };
        self.entries.insert(concern, entry);
    }

    /// What was stuck works again. Its tries are remembered for a while.
    pub(super) fn heal(&mut self, concern: Concern, now: Instant) {
        let entry = self.entries.get_mut(&concern);
        if let Some(entry) = entry.filter(|entry| entry.stuck) {
            entry.stuck = false;
            entry.next = now + FORGIVEN;
        }
    }

    /// Forgets what has long been well.
    pub(super) fn forgive(&mut self, now: Instant) {
        self.entries
            .retain(|_, entry| entry.stuck || now < entry.next);
    }

    /// Puts off the next try of `concern`.
    pub(super) fn postpone(&mut self, concern: Concern, until: Instant) {
        if let Some(entry) = self.entries.get_mut(&concern) {
            entry.next = entry.next.max(until);
        }
    }

    /// Whether `concern` is left out now.
    pub(super) fn holds(&self, concern: Concern) -> bool {
        self.stuck(concern).is_some()
    }

    /// Whether `concern` is stuck and its next try is due.
    pub(super) fn due(&self, concern: Concern, now: Instant) -> bool {
        self.entries
            .get(&concern)
            .is_some_and(|entry| entry.stuck && now >= entry.next)
    }

    /// The call that is stuck for `concern`.
    pub(super) fn stuck(&self, concern: Concern) -> Option<&StuckCall> {
        let entry = self.entries.get(&concern)?;
        entry.stuck.then_some(&entry.call)
    }

    /// Every card that is left out now, with its call.
    pub(super) fn cards(&self) -> impl Iterator<Item = (CardRef, &StuckCall)> {
        self.entries
            .iter()
            .filter_map(|(concern, entry)| match concern {
                Concern::Card(card) if entry.stuck => Some((*card, &entry.call)),
                _ => None,
            })
    }

    /// Every call that is stuck.
    pub(super) fn calls(&self) -> impl Iterator<Item = &StuckCall> {
        self.entries.values().filter(|e| e.stuck).map(|e| &e.call)
    }
}

#[cfg(test)]
mod tests;
