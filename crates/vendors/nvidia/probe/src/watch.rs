//! Waits for the events of all cards in one NVML event set. The set is made anew when the cards
//! change.

use std::{sync::Arc, thread, time::Duration};

use jiff::Timestamp;
use model::{DeviceId, Event, EventCode};
use nvml::{DriverEvent, EventSet, NvmlSession};
use probe::child::{EventSource, WatchError};

use super::{
    stage::{SharedDriver, WatchedCard, Watchlist},
    topology::card_handle,
};

/// Number of waits after which cards whose registration failed are tried again.
const PATIENCE: u32 = 60;

/// Event source of NVIDIA's cards. Used by one thread.
#[derive(Debug)]
pub(super) struct EventWatch {
    stage: SharedDriver,
    /// Watchlist that the set was made for; `None` if the set must be made.
    scene: Option<Watchlist>,
    /// Cards of the set that the last survey did not find. The set still has them, because the
    /// driver may report why a card went. When one comes back the set is made anew.
    away: Vec<WatchedCard>,
    /// Event set; `None` if there is no card that reports events.
    set: Option<EventSet>,
    /// Cards that could not be added to the set, and the driver's error.
    unheard: Vec<(WatchedCard, nvml::Error)>,
    /// Number of waits until these cards are tried again; `None` if there are none.
    patience: Option<u32>,
}

// === impl EventWatch ===

impl EventWatch {
    pub(super) fn new(stage: SharedDriver) -> Self {
        Self {
            stage,
            scene: None,
            away: Vec::new(),
            set: None,
            unheard: Vec::new(),
            patience: None,
        }
    }

    /// Makes the event set match the watchlist.
    fn follow_watchlist(&mut self) -> Result<(), nvml::Error> {
        let scene = self.stage.scene();
        self.patience = self.patience.map(|waits| waits.saturating_sub(1));
        if !self.still_serves(&scene) || self.patience == Some(0) {
            // The old set holds the old driver. Both must be closed first, or the survey thread
            // cannot load a replaced library.
            self.release_event_set();
            if let Some(session) = &scene.session
                && !scene.cards.is_empty()
            {
                self.create_event_set(session, &scene.cards)?;
            }
        } else if let Some(old) = self.scene.take() {
            let gone = old
                .cards
                .into_iter()
                .filter(|card| !scene.contains_card(card));
            self.away.extend(gone);
        }
        self.scene = Some(scene);
        Ok(())
    }

    /// Returns true if the set covers the watchlist: the driver is the same, and no card is new or came
    /// back.
    fn still_serves(&self, scene: &Watchlist) -> bool {
        let Some(old) = &self.scene else { return false };
        old.same_session(scene) && scene.cards.iter().all(|card| old.contains_card(card))
    }

    /// Makes an event set of all cards that can be registered. A card that cannot be registered
    /// affects no other.
    fn create_event_set(
        &mut self,
        session: &Arc<NvmlSession>,
        cards: &[WatchedCard],
    ) -> Result<(), nvml::Error> {
        let mut set = match EventSet::create_set(Arc::clone(session)) {
            Err(error) if error.is_not_supported() => {
                tracing::info!(%error, "this driver reports no events");
                return Ok(());
            }
            created => created?,
        };
        let mut heard = false;
        for card in cards {
            let added = card_handle(session, card.at).and_then(|device| set.add_card(&device));
            let Err(error) = added else {
                heard = true;
                continue;
            };
            let (id, at) = (&card.id, card.at);
            if error.is_not_supported() {
                tracing::info!(%id, card = %at, "this card reports no events");
            } else {
                tracing::warn!(%id, card = %at, %error, "this card's events cannot be listened to");
                self.unheard.push((card.clone(), error));
                self.patience = Some(PATIENCE);
            }
        }
        self.set = heard.then_some(set);
        Ok(())
    }

    /// Waits without an event set: the whole time if the cards report no events, or else until
    /// there are cards.
    fn wait_without_set(&self, limit: Duration) {
        match self.scene.as_ref().is_some_and(|s| !s.cards.is_empty()) {
            true => thread::sleep(limit),
            false => self.stage.await_cards(limit),
        }
    }

    /// Closes the event set and with it the driver.
    fn release_event_set(&mut self) {
        self.set = None;
        self.scene = None;
        self.away.clear();
        self.unheard.clear();
        self.patience = None;
    }

    /// Converts NVML's event into events of the devices concerned. Other kinds give none.
    fn to_events(&self, occurrence: &DriverEvent) -> Vec<Event> {
        let code = match occurrence.kind {
            // NVML reports every XID, including those of a program's own fault. The rules decide
            // about each.
            nvml::EventKind::Xid(number) => EventCode::from(("xid", number)),
            nvml::EventKind::SingleBitEcc => EventCode::ECC_CORRECTED,
            nvml::EventKind::DoubleBitEcc => EventCode::ECC_UNCORRECTED,
            nvml::EventKind::Other(_) => return Vec::new(),
        };
        let present = self.scene.iter().flat_map(|scene| &scene.cards);
        let mut cards = present.chain(&self.away);
        let Some(card) = cards.find(|card| Some(card.at) == occurrence.card) else {
            tracing::warn!(?occurrence, "an event of a card that is not known");
            return Vec::new();
        };
        // NVML's events carry no time, and an XID event has only the last XID before the wait
        // returned.
        let at = Timestamp::now();
        concerned(card, occurrence)
            .into_iter()
            .map(|device| Event {
                device,
                at,
                code: code.clone(),
            })
            .collect()
    }
}

impl EventSource for EventWatch {
    fn wait_events(&mut self, timeout: Duration) -> Result<Vec<Event>, WatchError> {
        let followed = self.follow_watchlist();
        let waited = followed.and_then(|()| match &mut self.set {
            Some(set) => set.wait_event(timeout),
            None => {
                self.wait_without_set(timeout);
                Ok(None)
            }
        });
        match waited {
            Ok(occurrence) => Ok(occurrence.map_or(Vec::new(), |o| self.to_events(&o))),
            Err(error) if error.is_not_supported() => {
                tracing::info!(%error, "this driver reports no events");
                self.set = None;
                Ok(Vec::new())
            }
            Err(error) => {
                self.release_event_set();
                Err(WatchError(error.to_string()))
            }
        }
    }

    fn list_warnings(&self) -> Vec<String> {
        let there = |card: &WatchedCard| {
            self.scene
                .as_ref()
                .is_some_and(|scene| scene.contains_card(card))
        };
        self.unheard
            .iter()
            .filter(|(card, _)| there(card))
            .map(|(card, error)| {
                let (call, code) = (error.call_name(), error.code_name());
                format!("events of {} are not heard: {call}: {code}", card.at)
            })
            .collect()
    }
}

/// Returns the devices that an event concerns: the MIG devices that it names, or else the whole
/// card.
fn concerned(card: &WatchedCard, occurrence: &DriverEvent) -> Vec<DeviceId> {
    let matches = |wanted: Option<u32>, is: u32| wanted.is_none_or(|wanted| wanted == is);
    let parts: Vec<DeviceId> = card
        .partitions
        .iter()
        .filter(|(gpu, compute, _)| {
            matches(occurrence.gpu_instance, *gpu) && matches(occurrence.compute_instance, *compute)
        })
        .map(|(_, _, id)| id.clone())
        .collect();
    // NVIDIA's device plugin loses events of MIG devices here: its map has one device for each card
    // (internal/rm/health.go, issue 1929).
    if occurrence.gpu_instance.is_none() || parts.is_empty() {
        return vec![card.id.clone()];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::CardRef;
    use rstest::rstest;

    #[rstest]
    #[case(None, None, &["GPU-1"])]
    #[case(Some(1), Some(0), &["MIG-a"])]
    #[case(Some(2), None, &["MIG-b", "MIG-c"])]
    #[case(Some(9), Some(0), &["GPU-1"])]
    #[case(None, Some(0), &["GPU-1"])]
    fn an_event_concerns_the_instances_it_names(
        #[case] gpu_instance: Option<u32>,
        #[case] compute_instance: Option<u32>,
        #[case] expected: &[&str],
    ) {
        let card = WatchedCard {
            at: CardRef::Index(0),
            id: "GPU-1".into(),
            partitions: vec![
                (1, 0, "MIG-a".into()),
                (2, 0, "MIG-b".into()),
                (2, 1, "MIG-c".into()),
            ],
        };
        let occurrence = DriverEvent {
            card: Some(card.at),
            gpu_instance,
            compute_instance,
            kind: nvml::EventKind::Xid(79),
        };
        let ids: Vec<DeviceId> = concerned(&card, &occurrence);
        let ids: Vec<&str> = ids.iter().map(DeviceId::as_str).collect();
        assert_eq!(ids, expected);
    }
}
