//! Counters that a reset sets back: how a reset shows that began and ended between two looks.

use model::SinceReset;

use super::{
    Record,
    events::{Happened, action},
};
use crate::{Now, Policy, xid::Action};

/// More than a card draws that was just reset, and is therefore idle.
const IDLE_WATTS: u64 = 1000;

// === impl Record ===

impl Record {
    /// Takes in what was counted since the device's last reset, or since that of its card. Tells
    /// whether that began anew since it was last counted; then what a reset ends has ended.
    pub fn count(&mut self, counts: &SinceReset, policy: &Policy, now: Now) -> bool {
        let before = self.since_reset;
        self.since_reset = SinceReset {
            energy_millijoules: counts.energy_millijoules.or(before.energy_millijoules),
            pcie_replays: counts.pcie_replays.or(before.pcie_replays),
            ecc_errors: counts.ecc_errors.or(before.ecc_errors),
        };
        let anew = began_anew(&before, counts);
        // The next agent counts from here.
        self.unsaved |= !self.events.is_empty() && (anew || before.is_empty());
        if anew {
            let drawn = counts.energy_millijoules;
            self.events.retain(|event, happened| {
                action(*event, policy) == Action::Permanent || happened.is_newer(drawn, now)
            });
        }
        anew
    }
}

// === impl Happened ===

impl Happened {
    /// Tells whether it came after the reset since which a card has drawn that much: the card cannot
    /// have drawn it since the event.
    fn is_newer(&self, drawn: Option<u64>, now: Now) -> bool {
        let ago = u64::try_from(self.last.ago(now).as_millis()).unwrap_or(u64::MAX);
        let most = ago.saturating_mul(IDLE_WATTS);
        !self.restored && drawn.is_some_and(|millijoules| millijoules > most)
    }
}

/// Tells whether the counters began anew. The best one that the card has decides alone, and where it
/// was not read nothing is decided:
///
/// - Energy always grows, and only a reset or a new loading of the driver sets it back.
/// - PCIe replays are set back by the same, but often stand at 0, so that nothing shows.
/// - An operator can clear the counts of memory errors without a reset
///   (`nvidia-smi --reset-ecc-errors=0`): they decide only for a card that has neither of the others.
fn began_anew(before: &SinceReset, now: &SinceReset) -> bool {
    let counters = [
        (before.energy_millijoules, now.energy_millijoules),
        (before.pcie_replays, now.pcie_replays),
        (before.ecc_errors, now.ecc_errors),
    ];
    let best = counters.into_iter().find(|(before, _)| before.is_some());
    matches!(best, Some((Some(before), Some(now))) if now < before)
}
