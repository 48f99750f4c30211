//! Counters that a reset sets back: how a reset shows that began and ended between two looks.

use model::SinceReset;

use super::{Record, events::action};
use config::EventAction as Action;

use crate::Policy;

/// Result of comparing the counters of one device with those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    /// Nothing was read that could be compared.
    Undecided,
    /// There is nothing to compare them with: they are counted from here on.
    FirstCount,
    /// The counters went on.
    WentOn,
    /// The counters began anew.
    BeganAnew,
}

// === impl Record ===

impl Record {
    /// Takes in what was counted since the device's last reset, or since that of its card. True if that
    /// began anew since it was last counted; then every event has ended that a reset ends and that was
    /// told before the last count.
    ///
    /// An event that was told since the last count may be older or newer than the reset. It stays: a
    /// device that failed must not come back by a guess. A probe therefore reads the counters right after
    /// it has told an event.
    pub fn count(&mut self, counts: &SinceReset, policy: &Policy) -> bool {
        let before = self.since_reset;
        let comparison = compare(&before, counts);
        let anew = comparison == Comparison::BeganAnew;
        self.since_reset = match comparison {
            Comparison::Undecided | Comparison::WentOn => join(&before, counts),
            Comparison::FirstCount | Comparison::BeganAnew => *counts,
        };
        if comparison == Comparison::Undecided {
            return false;
        }
        let mut is_news = anew || comparison == Comparison::FirstCount;
        // A reset is seen while the counter is below the one that was kept. It grows all the time, so
        // that it is kept again when it has doubled.
        is_news |= magnitude(counts) != magnitude(&before);
        is_news |= self.events.values().any(|event| !event.counted);
        // The next agent counts from here.
        self.unsaved |= is_news && !self.events.is_empty();
        if anew {
            self.events.retain(|event, happened| {
                action(event, policy) == Action::Permanent || !happened.counted
            });
        }
        for event in self.events.values_mut() {
            event.counted = true;
        }
        anew
    }
}

/// Compares counters with those before. The best counter that the card has decides alone, and where it
/// was not read nothing is decided.
fn compare(before: &SinceReset, now: &SinceReset) -> Comparison {
    if now.is_empty() {
        return Comparison::Undecided;
    }
    if before.is_empty() || !now.continues(before) {
        return Comparison::FirstCount;
    }
    let mut pairs = before.counters().into_iter().zip(now.counters());
    match pairs.find(|(before, _)| before.is_some()) {
        Some((Some(before), Some(now))) if now < before => Comparison::BeganAnew,
        Some((_, Some(_))) => Comparison::WentOn,
        _ => Comparison::Undecided,
    }
}

/// Fills counters that were not read now with those before.
fn join(before: &SinceReset, now: &SinceReset) -> SinceReset {
    SinceReset {
        energy_millijoules: now.energy_millijoules.or(before.energy_millijoules),
        pcie_replays: now.pcie_replays.or(before.pcie_replays),
        ecc_errors: now.ecc_errors.or(before.ecc_errors),
        opened: now.opened.or(before.opened),
        persistent: now.persistent,
    }
}

/// Order of magnitude of the best counter that was read.
fn magnitude(counts: &SinceReset) -> Option<u32> {
    let best = counts.counters().into_iter().flatten().next()?;
    Some(best.checked_ilog2().map_or(0, |log| log + 1))
}
