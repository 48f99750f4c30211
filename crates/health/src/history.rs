//! Changes of verdicts: what counts as one, and the last of them.

use std::collections::VecDeque;

use jiff::Timestamp;
use model::{Cause, CauseKind, DeviceId, Transition, Verdict};

/// The changes of one device that are kept at most.
const OF_ONE: usize = 64;
/// The changes of all devices that are kept at most.
const OF_ALL: usize = 512;

/// The last changes, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    entries: VecDeque<Transition>,
}

/// What changed from one verdict to the next, if anything did. A cause that stands is the same
/// cause even where a number in its evidence changed; a device that is new was healthy. That the
/// agent has a device reset before a container starts is no change: it would fill the history.
pub fn compare(
    before: Option<&Verdict>,
    after: &Verdict,
    device: &DeviceId,
    at: Timestamp,
) -> Option<Transition> {
    let healthy = Verdict::default();
    let before = before.unwrap_or(&healthy);
    let transition = Transition {
        at,
        device: device.clone(),
        from: before.state,
        to: after.state,
        began: missing(after, before),
        ended: missing(before, after),
    };
    let quiet = transition.began.is_empty() && transition.ended.is_empty();
    match (quiet, transition.from == transition.to) {
        (true, true) => None,
        // Trouble that was known weighs more now.
        (true, false) => Some(Transition {
            began: after.causes.clone(),
            ..transition
        }),
        (false, _) => Some(transition),
    }
}

// === impl History ===

impl History {
    /// A history from kept entries, the oldest first.
    pub fn from_entries(entries: impl IntoIterator<Item = Transition>) -> Self {
        let mut history = Self::default();
        for entry in entries {
            history.push(entry);
        }
        history
    }

    /// Adds a change, and forgets the oldest of its device, or of all, if there are too many.
    pub fn push(&mut self, entry: Transition) {
        let of_one = |old: &&Transition| old.device == entry.device;
        if self.entries.iter().filter(of_one).count() >= OF_ONE {
            let oldest = self
                .entries
                .iter()
                .position(|old| old.device == entry.device);
            oldest.and_then(|at| self.entries.remove(at));
        }
        if self.entries.len() >= OF_ALL {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    /// Every change that is kept, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Transition> {
        self.entries.iter()
    }
}

/// The causes and warnings of one verdict that the other does not have.
fn missing(of: &Verdict, other: &Verdict) -> Vec<Cause> {
    let mut others: Vec<&Cause> = told(other).collect();
    let mut missing = Vec::new();
    for cause in told(of) {
        match others.iter().position(|other| is_same(cause, other)) {
            Some(at) => drop(others.swap_remove(at)),
            None => missing.push(cause.clone()),
        }
    }
    missing
}

/// The causes and warnings that count for a change.
fn told(verdict: &Verdict) -> impl Iterator<Item = &Cause> {
    let warnings = verdict.warnings.iter();
    let warnings = warnings.filter(|warning| warning.kind != CauseKind::Released);
    verdict.causes.iter().chain(warnings)
}

/// Trouble of a kind keeps its beginning for as long as it stands; of events and conditions there are
/// several in one kind, which their evidence tells apart.
fn is_same(one: &Cause, other: &Cause) -> bool {
    one.kind == other.kind && one.since == other.since && subject(one) == subject(other)
}

/// The part of the evidence that stays the same while a cause stands: for an event all of it, for a
/// condition its name.
fn subject(cause: &Cause) -> &str {
    match cause.kind {
        CauseKind::Event => &cause.evidence,
        CauseKind::Condition => cause.evidence.split(':').next().unwrap_or_default(),
        _ => "",
    }
}

#[cfg(test)]
mod tests;
