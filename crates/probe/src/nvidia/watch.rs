//! Waits for the events of all cards in one event set, which is made anew when the cards change.

use std::{sync::Arc, thread, time::Duration};

use jiff::Timestamp;
use model::DeviceId;
use nvml::{EventSet, Occurrence, Session};

use super::{
    stage::{Scene, Stage, Watched},
    topology::handle,
};
use crate::{
    child::{Events, WatchError},
    protocol::{Event, EventKind},
};

/// How long to rest while there is nothing to listen to.
const REST: Duration = Duration::from_millis(500);

/// After so many waits, cards that could not be listened to are tried again.
const PATIENCE: u32 = 60;

/// The events of NVIDIA's cards.
#[derive(Debug)]
pub(super) struct Watch {
    stage: Stage,
    /// What the set was made for; `None` where it is to be made.
    scene: Option<Scene>,
    /// `None` where there is nothing that can be listened to.
    set: Option<EventSet>,
    /// How many more waits until the cards that failed are tried again, where some did.
    patience: Option<u32>,
}

// === impl Watch ===

impl Watch {
    pub(super) fn new(stage: Stage) -> Self {
        Self {
            stage,
            scene: None,
            set: None,
            patience: None,
        }
    }

    /// Makes the event set follow the scene.
    fn follow(&mut self) -> Result<(), nvml::Error> {
        let scene = self.stage.scene();
        self.patience = self.patience.map(|waits| waits.saturating_sub(1));
        let same = self
            .scene
            .as_ref()
            .is_some_and(|old| old.same_cards(&scene));
        if !same || self.patience == Some(0) {
            // The old set holds the old driver: let both go before anything else.
            self.release();
            if let Some(session) = &scene.session
                && !scene.cards.is_empty()
            {
                self.listen(session, &scene.cards)?;
            }
        }
        self.scene = Some(scene);
        Ok(())
    }

    /// Makes an event set of all cards that can be listened to; one that cannot affects no other.
    fn listen(&mut self, session: &Arc<Session>, cards: &[Watched]) -> Result<(), nvml::Error> {
        let mut set = EventSet::create(Arc::clone(session))?;
        let mut heard = false;
        for card in cards {
            let added = handle(session, card.at).and_then(|device| set.add(&device));
            let Err(error) = added else {
                heard = true;
                continue;
            };
            let (id, card) = (&card.id, card.at);
            if error.is_not_supported() {
                tracing::info!(%id, %card, "this card reports no events");
            } else {
                tracing::warn!(%id, %card, %error, "this card's events cannot be listened to");
                self.patience = Some(PATIENCE);
            }
        }
        self.set = heard.then_some(set);
        Ok(())
    }

    fn release(&mut self) {
        self.set = None;
        self.scene = None;
        self.patience = None;
    }

    fn events(&self, occurrence: &Occurrence) -> Vec<Event> {
        let event = match occurrence.kind {
            nvml::EventKind::Xid(number) => EventKind::Xid(number),
            nvml::EventKind::SingleBitEcc => EventKind::EccCorrected,
            nvml::EventKind::DoubleBitEcc => EventKind::EccUncorrected,
            nvml::EventKind::Other(_) => return Vec::new(),
        };
        let mut cards = self.scene.iter().flat_map(|scene| &scene.cards);
        let Some(card) = cards.find(|card| Some(card.at) == occurrence.card) else {
            tracing::warn!(?occurrence, "an event of a card that is not known");
            return Vec::new();
        };
        let at = Timestamp::now();
        concerned(card, occurrence)
            .into_iter()
            .map(|device| Event { device, at, event })
            .collect()
    }
}

impl Events for Watch {
    fn wait(&mut self, timeout: Duration) -> Result<Vec<Event>, WatchError> {
        let waited = self.follow().and_then(|()| match &mut self.set {
            Some(set) => set.wait(timeout),
            None => {
                thread::sleep(REST.min(timeout));
                Ok(None)
            }
        });
        match waited {
            Ok(occurrence) => Ok(occurrence.map_or(Vec::new(), |o| self.events(&o))),
            Err(error) => {
                self.release();
                Err(WatchError(error.to_string()))
            }
        }
    }
}

/// The devices that an event is about: the MIG devices it names, else the whole card.
fn concerned(card: &Watched, occurrence: &Occurrence) -> Vec<DeviceId> {
    let matches = |wanted: Option<u32>, is: u32| wanted.is_none_or(|wanted| wanted == is);
    let parts: Vec<DeviceId> = card
        .partitions
        .iter()
        .filter(|(gpu, compute, _)| {
            matches(occurrence.gpu_instance, *gpu) && matches(occurrence.compute_instance, *compute)
        })
        .map(|(_, _, id)| id.clone())
        .collect();
    if occurrence.gpu_instance.is_none() || parts.is_empty() {
        return vec![card.id.clone()];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvml::Locator;
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
        let card = Watched {
            at: Locator::Index(0),
            id: "GPU-1".into(),
            partitions: vec![
                (1, 0, "MIG-a".into()),
                (2, 0, "MIG-b".into()),
                (2, 1, "MIG-c".into()),
            ],
        };
        let occurrence = Occurrence {
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
