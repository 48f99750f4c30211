//! How the cards are cut, and whether a lost one is back, asked for often and cheaply: a new MIG
//! layout, and a card on its way back, must not wait for the next look at everything.

use model::{CardRef, Kind, Unreadable};
use nvml::Session;

use super::{Seen, card::Card, topology::handle};

/// The cards in MIG mode, each with the ids of its MIG devices.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout(Vec<(CardRef, Vec<String>)>);

/// The cards that the driver did not even give a handle of.
#[derive(Debug, Default)]
pub(super) struct Away(Vec<CardRef>);

/// How the calls that give a handle begin.
const HANDLE: &str = "nvmlDeviceGetHandle";

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

// === impl Away ===

impl Away {
    /// Those of the last look. Where a handle was given and a later call failed, a handle says
    /// nothing.
    pub(super) fn seen(unreadable: &[Unreadable]) -> Self {
        let away = |card: &&Unreadable| card.failure.call.starts_with(HANDLE);
        let cards = unreadable.iter().filter(away).map(|away| away.card);
        Self(cards.collect())
    }

    /// Whether one is back.
    pub(super) fn is_back(&self, session: &Session) -> bool {
        self.0.iter().any(|at| handle(session, *at).is_ok())
    }
}
