//! Order in which cards were granted, for the policy `round-robin`. The caller that grants keeps
//! the order and passes it in, so that placement stays a pure function.

use std::collections::BTreeMap;

use model::DeviceId;

/// Order in which cards were granted, as a count of grants. Restarts at 0 with the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantHistory {
    now: u64,
    granted: BTreeMap<DeviceId, u64>,
}

// === impl GrantHistory ===

impl GrantHistory {
    /// Records one grant of these cards.
    pub fn record_grant<'a>(&mut self, cards: impl IntoIterator<Item = &'a DeviceId>) {
        self.now += 1;
        for card in cards {
            self.granted.insert(card.clone(), self.now);
        }
    }

    /// Returns the number of the card's last grant, counted from 1; 0 if the card was never
    /// granted.
    pub fn last(&self, card: &str) -> u64 {
        self.granted.get(card).copied().unwrap_or_default()
    }
}
