//! Calls that do not return, and the times at which their cards are tried again. Pure: time is an
//! argument.

use std::{collections::BTreeMap, time::Duration};

use model::{CardRef, StuckCall, Work};
use tokio::time::Instant;

use super::Limits;
use crate::protocol::Beat;

/// Part of the backend that a stuck call blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CallScope {
    /// One card, which is left out until it recovers.
    Card(CardRef),
    /// Events. Left out; nothing else depends on them.
    Events,
    /// Links between cards. Left out: links only improve the choice of cards.
    Links,
    /// The whole driver: no card can be read.
    Driver,
}

/// Overdue calls of one process, with the time at which the supervisor saw each first.
// Timed by the agent's monotonic clock: the probe's time stamps are wall clock time, which may be
// set.
#[derive(Debug, Default)]
pub(super) struct CallTimer {
    first_seen: Vec<(StuckCall, Instant)>,
}

/// All stuck calls, with the time of the next try.
#[derive(Debug, Default)]
pub(super) struct StuckCalls {
    entries: BTreeMap<CallScope, StuckEntry>,
}

#[derive(Debug)]
struct StuckEntry {
    call: StuckCall,
    /// True if the call is stuck now. False after a recovery: the entry keeps the number of tries.
    stuck: bool,
    tries: u32,
    next: Instant,
}

/// Age of a call when a probe first reports it.
const REPORTED_AFTER: Duration = Duration::from_secs(1);

/// Time after a recovery for which the number of tries is kept.
const FORGIVEN: Duration = Duration::from_secs(600);

// === impl CallScope ===

impl CallScope {
    /// Determines what `call` blocks.
    pub(super) fn of_call(call: &StuckCall) -> Self {
        match (call.work, call.device) {
            (Work::Links, _) => Self::Links,
            (_, Some(card)) => Self::Card(card),
            (Work::Events, None) => Self::Events,
            (Work::Survey | Work::Checks, None) => Self::Driver,
        }
    }

    fn call_limit(self, limits: &Limits) -> Duration {
        match self {
            Self::Card(_) | Self::Events | Self::Links => limits.call,
            // The start of a driver may take half a minute with 16 cards that are not initialised.
            Self::Driver => limits.driver_call,
        }
    }
}

// === impl CallTimer ===

impl CallTimer {
    /// Replaces the overdue calls by those of a beat.
    pub(super) fn update_calls(&mut self, beat: &Beat, now: Instant) {
        let mut calls = Vec::with_capacity(beat.calls.len());
        for call in &beat.calls {
            let known = self.first_seen.iter().find(|(known, _)| known == call);
            calls.push((call.clone(), known.map_or(now, |(_, since)| *since)));
        }
        self.first_seen = calls;
    }

    /// Lists the calls that are beyond the limit of a call on one card.
    pub(super) fn list_slow_calls(
        &self,
        limits: &Limits,
        now: Instant,
    ) -> impl Iterator<Item = &StuckCall> {
        self.beyond(now, |_| limits.call)
    }

    /// Finds the first call that is beyond its own limit: its process must be killed.
    pub(super) fn find_stuck(&self, limits: &Limits, now: Instant) -> Option<&StuckCall> {
        self.beyond(now, |concern| concern.call_limit(limits))
            .next()
    }

    /// Returns the oldest overdue call.
    pub(super) fn oldest_call(&self) -> Option<&StuckCall> {
        self.first_seen.first().map(|(call, _)| call)
    }

    /// Counts the age of all calls from `now` on: the agent itself was stopped for a while.
    pub(super) fn restart_timers(&mut self, now: Instant) {
        for (_, seen) in &mut self.first_seen {
            *seen = now;
        }
    }

    fn beyond(
        &self,
        now: Instant,
        limit: impl Fn(CallScope) -> Duration,
    ) -> impl Iterator<Item = &StuckCall> {
        self.first_seen
            .iter()
            .filter(move |(call, seen)| {
                // A call has this age already when the first beat names it.
                let limit = limit(CallScope::of_call(call)).saturating_sub(REPORTED_AFTER);
                now.duration_since(*seen) >= limit
            })
            .map(|(call, _)| call)
    }
}

// === impl StuckCalls ===

impl StuckCalls {
    /// Adds a call that did not return. What the call blocks is left out until the next try.
    pub(super) fn add_stuck(&mut self, call: StuckCall, limits: &Limits, now: Instant) {
        let concern = CallScope::of_call(&call);
        let tries = self.entries.get(&concern).map_or(0, |entry| entry.tries);
        let entry = StuckEntry {
            call,
            stuck: true,
            tries: tries.saturating_add(1),
            next: now + limits.pause(tries),
        };
        self.entries.insert(concern, entry);
    }

    /// Marks a part as recovered. The number of tries is kept for a while, so that a part that gets
    /// stuck again and again is tried with long pauses.
    pub(super) fn heal(&mut self, concern: CallScope, now: Instant) {
        let entry = self.entries.get_mut(&concern);
        if let Some(entry) = entry.filter(|entry| entry.stuck) {
            entry.stuck = false;
            entry.next = now + FORGIVEN;
        }
    }

    /// Removes the entries that recovered long ago.
    pub(super) fn forgive(&mut self, now: Instant) {
        self.entries
            .retain(|_, entry| entry.stuck || now < entry.next);
    }

    /// Postpones the next try of `concern` to `until` or later.
    pub(super) fn postpone(&mut self, concern: CallScope, until: Instant) {
        if let Some(entry) = self.entries.get_mut(&concern) {
            entry.next = entry.next.max(until);
        }
    }

    /// Returns true if `concern` is stuck now.
    pub(super) fn is_stuck(&self, concern: CallScope) -> bool {
        self.stuck_call(concern).is_some()
    }

    /// Returns true if `concern` is stuck and the next try is due.
    pub(super) fn is_retry_due(&self, concern: CallScope, now: Instant) -> bool {
        self.entries
            .get(&concern)
            .is_some_and(|entry| entry.stuck && now >= entry.next)
    }

    /// Returns the stuck call of `concern`.
    pub(super) fn stuck_call(&self, concern: CallScope) -> Option<&StuckCall> {
        let entry = self.entries.get(&concern)?;
        entry.stuck.then_some(&entry.call)
    }

    /// Lists the stuck cards, each with its call.
    pub(super) fn list_stuck_cards(&self) -> impl Iterator<Item = (CardRef, &StuckCall)> {
        self.entries
            .iter()
            .filter_map(|(concern, entry)| match concern {
                CallScope::Card(card) if entry.stuck => Some((*card, &entry.call)),
                _ => None,
            })
    }

    /// Lists all stuck calls.
    pub(super) fn list_stuck_calls(&self) -> impl Iterator<Item = &StuckCall> {
        self.entries.values().filter(|e| e.stuck).map(|e| &e.call)
    }
}

#[cfg(test)]
mod tests;
