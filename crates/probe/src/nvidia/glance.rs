//! How the cards are cut, asked for often and cheaply: a new MIG layout must not wait for the next
//! look at everything.

use model::Kind;
use nvml::{Locator, Session};

use super::{Seen, card::Card, topology::handle};

/// The cards in MIG mode, each with the ids of its MIG devices.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout(Vec<(Locator, Vec<String>)>);

// === impl Layout ===

impl Layout {
    /// As the last look saw it, so that what changed during that look is a change, too.
    pub(super) fn seen(cards: &[Card]) -> Self {
        let cut = |card: &Card| {
            let (whole, parts) = card.devices.split_first()?;
            let is_cut = whole.kind == Kind::Card { partitioned: true };
            let ids = parts.iter().map(|part| part.id.to_string());
            is_cut.then(|| (card.at, ids.collect()))
        };
        Self(cards.iter().filter_map(cut).collect())
    }

    /// As it is now, on the cards of the last look. A card that is not in MIG mode costs one call;
    /// what does not answer is as if it were not.
    pub(super) fn now(session: &Session, cards: &[Seen]) -> Self {
        let cut = |card: &Seen| {
            let device = handle(session, card.at).ok()?;
            if !device.mig_enabled().ok()? {
                return None;
            }
            let places = device.mig_places().unwrap_or(0);
            let part = |place| device.mig_device(place).and_then(|part| part.uuid()).ok();
            Some((card.at, (0..places).filter_map(part).collect()))
        };
        Self(cards.iter().filter_map(cut).collect())
    }
}
