//! History of verdicts: decides what is a change, and keeps the last ones.

use std::collections::VecDeque;

use jiff::Timestamp;
use model::{Cause, CauseKind, DeviceId, Transition, Verdict};

/// Limit of changes that are kept for one device. A device that flaps must not push out the history
/// of the others.
const OF_ONE: usize = 64;
/// Limit of changes that are kept for all devices.
const OF_ALL: usize = 512;

/// The last changes of verdicts, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    entries: VecDeque<Transition>,
}

/// Returns the change from one verdict to the next, or `None` if there is none. A device without an
/// earlier verdict counts as healthy before.
///
/// A cause whose evidence changed only in a number is the same cause. A reset by the agent before a
/// container starts is no change: it happens at every start and would fill the history.
pub fn compare_verdicts(
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
        began: causes_only_in(after, before),
        ended: causes_only_in(before, after),
    };
    let quiet = transition.began.is_empty() && transition.ended.is_empty();
    match (quiet, transition.from == transition.to) {
        (true, true) => None,
        // The causes are the same, but their weight changed, such as by a new config.
        (true, false) => Some(Transition {
            began: after.causes.clone(),
            ..transition
        }),
        (false, _) => Some(transition),
    }
}

// === impl History ===

impl History {
    /// Builds a history from saved entries, the oldest first.
    pub fn from_entries(entries: impl IntoIterator<Item = Transition>) -> Self {
        let mut history = Self::default();
        for entry in entries {
            history.push(entry);
        }
        history
    }

    /// Adds a change. Drops the oldest change of the device, or of all devices, if there are too
    /// many.
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

    /// Iterates over all kept changes, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Transition> {
        self.entries.iter()
    }
}

/// Returns the causes and warnings of one verdict that the other does not have.
fn causes_only_in(of: &Verdict, other: &Verdict) -> Vec<Cause> {
    let mut others: Vec<&Cause> = counted_causes(other).collect();
    let mut missing = Vec::new();
    for cause in counted_causes(of) {
        match others.iter().position(|other| is_same(cause, other)) {
            Some(at) => drop(others.swap_remove(at)),
            None => missing.push(cause.clone()),
        }
    }
    missing
}

/// Returns the causes and warnings that count for a change.
fn counted_causes(verdict: &Verdict) -> impl Iterator<Item = &Cause> {
    let warnings = verdict.warnings.iter();
    // A warning of this kind is a reset by the agent itself. An operator's release is a cause.
    let warnings = warnings.filter(|warning| warning.kind != CauseKind::Released);
    verdict.causes.iter().chain(warnings)
}

/// True if both causes are of the same finding. A finding keeps the time it began. Several events
/// or conditions can share a kind; their evidence tells them apart.
fn is_same(one: &Cause, other: &Cause) -> bool {
    one.kind == other.kind
        && one.since == other.since
        && stable_evidence(one) == stable_evidence(other)
}

/// Returns the part of the evidence that does not change while a cause lasts: all of it for an
/// event, the name for a condition.
fn stable_evidence(cause: &Cause) -> &str {
    match cause.kind {
        CauseKind::Event => &cause.evidence,
        CauseKind::Condition => cause.evidence.split(':').next().unwrap_or_default(),
        _ => "",
    }
}

#[cfg(test)]
mod tests;
