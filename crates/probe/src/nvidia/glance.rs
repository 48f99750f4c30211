//! How the cards are cut, asked for often and cheaply: a new MIG layout must not wait for the next
//! look at everything.

use nvml::{Locator, Session};

use super::{Seen, topology::handle};

/// How each card that can be cut is cut.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout(Vec<(Locator, Vec<String>)>);

// === impl Layout ===

impl Layout {
    /// Asks the cards of the last look. One that cannot be cut costs one call, one that is whole
    /// too; what does not answer is as if it were whole.
    pub(super) fn of(session: &Session, cards: &[Seen]) -> Self {
        let cut = |card: &Seen| {
            let device = handle(session, card.at).ok()?;
            let enabled = device.mig_enabled().ok()?;
            let places = match enabled {
                true => device.mig_places().unwrap_or(0),
                false => 0,
            };
            let part = |place| device.mig_device(place).and_then(|part| part.uuid()).ok();
            let mut parts: Vec<String> = (0..places).filter_map(part).collect();
            // A card in MIG mode without devices is not a whole one.
            if enabled {
                parts.push("enabled".to_owned());
            }
            Some((card.at, parts))
        };
        Self(cards.iter().filter_map(cut).collect())
    }
}
