//! State that the survey thread shares with the thread that waits for events: the open driver and
//! the cards to listen to. No lock is held during a driver call, because a call may never return.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use model::{CardRef, DeviceId};
use nvml::NvmlSession;

/// Longest time to wait for the other thread to let go of the driver.
const RELEASE: Duration = Duration::from_secs(4);
/// Time between two checks of the reference count.
const STEP: Duration = Duration::from_millis(20);

/// Watchlist of the event thread, shared by both threads.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedDriver(Arc<(Mutex<Watchlist>, Condvar)>);

/// The open driver and the cards whose events are wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Watchlist {
    /// Open driver; `None` while there is none.
    pub(super) session: Option<Arc<NvmlSession>>,
    /// Cards to listen to.
    pub(super) cards: Vec<WatchedCard>,
}

/// Card whose events are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WatchedCard {
    /// Reference by which NVML gives its handle.
    pub(super) at: CardRef,
    /// Id of the device that the card is reported as.
    pub(super) id: DeviceId,
    /// Its MIG devices: GPU instance, compute instance and id of each.
    pub(super) partitions: Vec<(u32, u32, DeviceId)>,
}

// === impl SharedDriver ===

impl SharedDriver {
    /// Returns a copy of the watchlist.
    pub(super) fn scene(&self) -> Watchlist {
        self.lock_watchlist().clone()
    }

    /// Replaces the watchlist and wakes the event thread.
    pub(super) fn set_watchlist(&self, scene: Watchlist) {
        *self.lock_watchlist() = scene;
        self.0.1.notify_all();
    }

    /// Waits at most `limit` for an open driver with cards to listen to.
    pub(super) fn await_cards(&self, limit: Duration) {
        let empty = |scene: &mut Watchlist| scene.session.is_none() || scene.cards.is_empty();
        // The caller reads the watchlist anyway, so the result of the wait does not matter.
        let _ = self
            .0
            .1
            .wait_timeout_while(self.lock_watchlist(), limit, empty);
    }

    /// Empties the watchlist, waits until the caller alone holds the driver, and closes the driver.
    /// The wait has a limit: a thread that hangs in the driver never lets go.
    pub(super) fn release_driver(&self, session: Arc<NvmlSession>) {
        *self.lock_watchlist() = Watchlist::default();
        let mut left = RELEASE;
        // Polled, because an `Arc` does not signal that a reference was dropped.
        while Arc::strong_count(&session) > 1 && !left.is_zero() {
            thread::sleep(STEP);
            left = left.saturating_sub(STEP);
        }
        drop(session);
    }

    fn lock_watchlist(&self) -> MutexGuard<'_, Watchlist> {
        // The list is replaced in one assignment, so it is complete even if the other thread
        // panicked.
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Watchlist ===

impl Watchlist {
    /// Returns true if both have the same open driver, or none.
    pub(super) fn same_session(&self, other: &Self) -> bool {
        match (&self.session, &other.session) {
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            (None, None) => true,
            _ => false,
        }
    }

    /// Returns true if the card is on the list, whatever its partitions.
    pub(super) fn contains_card(&self, card: &WatchedCard) -> bool {
        let same = |other: &WatchedCard| other.at == card.at && other.id == card.id;
        self.cards.iter().any(same)
    }
}
