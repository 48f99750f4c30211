//! Cheap checks between two surveys: the MIG layout, and the return of a lost card. Both changes
//! must not wait for the next survey.

use model::{CardRef, Kind, Unreadable};
use nvml::NvmlSession;

use super::{KnownCard, card::SurveyedCard, topology::card_handle};

/// Cards in MIG mode, each with the ids of its MIG devices.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MigLayout(Vec<(CardRef, Vec<String>)>);

/// Cards for which NVML gave no handle.
#[derive(Debug, Default)]
pub(super) struct LostCards(Vec<CardRef>);

/// Prefix of NVML's calls that give a handle.
const HANDLE: &str = "nvmlDeviceGetHandle";

// === impl MigLayout ===

impl MigLayout {
    /// Returns the layout that a survey read, so that a change during the survey counts as a
    /// change.
    pub(super) fn from_cards(cards: &[SurveyedCard]) -> Self {
        let cut = |card: &SurveyedCard| {
            let (whole, parts) = card.devices.split_first()?;
            let is_cut = whole.kind == Kind::Card { partitioned: true };
            let ids = parts.iter().map(|part| part.id.to_string());
            is_cut.then(|| (card.at, ids.collect()))
        };
        Self(cards.iter().filter_map(cut).collect())
    }

    /// Reads the layout of the cards of the last survey. Costs one call for a card that is not in
    /// MIG mode. A card that does not answer counts as not in MIG mode.
    pub(super) fn read_now(session: &NvmlSession, cards: &[KnownCard]) -> Self {
        let cut = |card: &KnownCard| {
            let device = card_handle(session, card.at).ok()?;
            if !device.mig_enabled().ok()? {
                return None;
            }
            let places = device.mig_places().unwrap_or(0);
            let part = |place| {
                device
                    .mig_device(place)
                    .and_then(|part| part.read_uuid())
                    .ok()
            };
            Some((card.at, (0..places).filter_map(part).collect()))
        };
        Self(cards.iter().filter_map(cut).collect())
    }
}

// === impl LostCards ===

impl LostCards {
    /// Returns the cards of a survey that gave no handle. If the handle was given and a later call
    /// failed, a new handle does not show that the card is back.
    pub(super) fn from_unreadable(unreadable: &[Unreadable]) -> Self {
        let away = |card: &&Unreadable| card.failure.call.starts_with(HANDLE);
        let cards = unreadable.iter().filter(away).map(|away| away.card);
        Self(cards.collect())
    }

    /// Returns true if NVML gives a handle for one of them again.
    pub(super) fn is_back(&self, session: &NvmlSession) -> bool {
        self.0.iter().any(|at| card_handle(session, *at).is_ok())
    }
}
