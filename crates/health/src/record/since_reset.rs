//! Detects a reset that began and ended between two looks, by counters that a reset sets back.

use model::SinceReset;

use super::{DeviceRecord, events::event_action};
use config::EventAction as Action;

use crate::HealthPolicy;

/// Result of comparing the counters of a device with the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CounterComparison {
    /// No counter was read that can be compared.
    Undecided,
    /// There are no comparable earlier counters: counting starts here.
    FirstCount,
    /// The counters did not fall.
    Continued,
    /// The counters fell, so the device was reset.
    Restarted,
}

// === impl DeviceRecord ===

impl DeviceRecord {
    /// Takes in the counters since the last reset of the device or of its card. Returns true if
    /// they show a reset since the last call. Such a reset ends every event that a reset ends and
    /// that was reported before that call.
    ///
    /// An event reported after the last call may be older or newer than the reset. It stays: a
    /// failed device must not come back by a guess. A probe therefore reads the counters right
    /// after each event.
    pub fn record_counters(&mut self, counts: &SinceReset, policy: &HealthPolicy) -> bool {
        let before = self.since_reset;
        let comparison = compare_counters(&before, counts);
        let anew = comparison == CounterComparison::Restarted;
        self.since_reset = match comparison {
            CounterComparison::Undecided | CounterComparison::Continued => {
                fill_missing(&before, counts)
            }
            CounterComparison::FirstCount | CounterComparison::Restarted => *counts,
        };
        if comparison == CounterComparison::Undecided {
            return false;
        }
        let mut is_news = anew || comparison == CounterComparison::FirstCount;
        // A reset shows only while the counter is below the saved one. The counter grows all the
        // time, so it is saved again each time it has doubled, not at every look.
        is_news |= magnitude(counts) != magnitude(&before);
        is_news |= self.events.values().any(|event| !event.counted);
        // The next agent compares with these counters, and needs them only if there is an event to
        // end.
        self.unsaved |= is_news && !self.events.is_empty();
        if anew {
            self.events.retain(|event, happened| {
                event_action(event, policy) == Action::Permanent || !happened.counted
            });
        }
        for event in self.events.values_mut() {
            event.counted = true;
        }
        anew
    }
}

/// Compares counters with earlier ones. Only the most reliable counter that was read before
/// decides. If that one is missing now, the result is undecided.
fn compare_counters(before: &SinceReset, now: &SinceReset) -> CounterComparison {
    if now.is_empty() {
        return CounterComparison::Undecided;
    }
    // Without persistence mode the driver initializes a card again when a client opens it, and the
    // counters start at 0 without a reset (NVIDIA: "Driver Persistence").
    if before.is_empty() || !now.continues(before) {
        return CounterComparison::FirstCount;
    }
    let mut pairs = before.counters().into_iter().zip(now.counters());
    match pairs.find(|(before, _)| before.is_some()) {
        Some((Some(before), Some(now))) if now < before => CounterComparison::Restarted,
        Some((_, Some(_))) => CounterComparison::Continued,
        _ => CounterComparison::Undecided,
    }
}

/// Fills in earlier values for counters that were not read now.
fn fill_missing(before: &SinceReset, now: &SinceReset) -> SinceReset {
    SinceReset {
        energy_millijoules: now.energy_millijoules.or(before.energy_millijoules),
        pcie_replays: now.pcie_replays.or(before.pcie_replays),
        ecc_errors: now.ecc_errors.or(before.ecc_errors),
        opened: now.opened.or(before.opened),
        persistent: now.persistent,
    }
}

/// Returns the order of magnitude (the bit length) of the most reliable counter that was read.
fn magnitude(counts: &SinceReset) -> Option<u32> {
    let best = counts.counters().into_iter().flatten().next()?;
    Some(best.checked_ilog2().map_or(0, |log| log + 1))
}
