//! What the thread that surveys tells the thread that waits for events: the open driver and the
//! cards to listen to. No lock is held while a driver call is under way.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use model::{CardRef, DeviceId};
use nvml::Session;

/// How long the other thread gets to let go of the driver.
const RELEASE: Duration = Duration::from_secs(4);
const STEP: Duration = Duration::from_millis(20);

/// The meeting place of the two threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Stage(Arc<(Mutex<Scene>, Condvar)>);

/// What is on the stage now.
#[derive(Clone, Debug, Default)]
pub(super) struct Scene {
    /// The open driver.
    pub(super) session: Option<Arc<Session>>,
    /// The cards to listen to.
    pub(super) cards: Vec<Watched>,
}

/// A card to listen to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Watched {
    /// Where it is found.
    pub(super) at: CardRef,
    /// Its id.
    pub(super) id: DeviceId,
    /// Its MIG devices with their GPU and compute instances.
    pub(super) partitions: Vec<(u32, u32, DeviceId)>,
}

// === impl Stage ===

impl Stage {
    /// What is on the stage now.
    pub(super) fn scene(&self) -> Scene {
        self.lock().clone()
    }

    /// Puts a new scene on.
    pub(super) fn show(&self, scene: Scene) {
        *self.lock() = scene;
        self.0.1.notify_all();
    }

    /// Waits until there is a driver with cards to listen to, or the time is over.
    pub(super) fn await_cards(&self, limit: Duration) {
        let empty = |scene: &mut Scene| scene.session.is_none() || scene.cards.is_empty();
        // What comes of it is looked at by the caller.
        let _ = self.0.1.wait_timeout_while(self.lock(), limit, empty);
    }

    /// Clears the stage and waits until nobody but the caller holds the driver, within limits: a
    /// thread that hangs in the driver never lets go.
    pub(super) fn clear(&self, session: Arc<Session>) {
        *self.lock() = Scene::default();
        let mut left = RELEASE;
        while Arc::strong_count(&session) > 1 && !left.is_zero() {
            thread::sleep(STEP);
            left = left.saturating_sub(STEP);
        }
        drop(session);
    }

    fn lock(&self) -> MutexGuard<'_, Scene> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Scene ===

impl Scene {
    /// Whether both have the same open driver.
    pub(super) fn same_session(&self, other: &Self) -> bool {
        match (&self.session, &other.session) {
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether the card is on it, whatever its partitions.
    pub(super) fn has(&self, card: &Watched) -> bool {
        let same = |other: &Watched| other.at == card.at && other.id == card.id;
        self.cards.iter().any(same)
    }
}
