//! When cards were granted last, for the policy that goes round. Whoever grants keeps it and hands
//! it in, so that placement stays a pure function.

use std::collections::BTreeMap;

use model::DeviceId;

/// The order in which cards were granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    now: u64,
    granted: BTreeMap<DeviceId, u64>,
}

// === impl Clock ===

impl Clock {
    /// Notes one grant of some cards.
    pub fn grant<'a>(&mut self, cards: impl IntoIterator<Item = &'a DeviceId>) {
        self.now += 1;
        for card in cards {
            self.granted.insert(card.clone(), self.now);
        }
    }

    /// How many grants there were when the card was granted last; 0 for never.
    pub fn last(&self, card: &str) -> u64 {
        self.granted.get(card).copied().unwrap_or_default()
    }
}
