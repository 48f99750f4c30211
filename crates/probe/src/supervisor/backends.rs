//! Orders to the supervisors of all backends, by the backend's name.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;

use super::orders::{Orders, ReleaseScope};

/// Orders of every backend, by the backend's name. Cheap to clone. A supervisor that does not run
/// carries the orders out when it starts.
#[derive(Clone, Debug, Default)]
pub struct OrdersByBackend(Arc<Mutex<BTreeMap<String, BackendOrders>>>);

/// The orders of one backend.
#[derive(Debug, Default)]
struct BackendOrders {
    orders: Orders,
    /// The config has the backend, so a supervisor carries the orders out.
    runs: bool,
}

/// Release of cards of one backend. Pass this value back to end the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendRelease {
    /// Name of the backend.
    pub backend: String,
    /// Cards that are released.
    pub which: ReleaseScope,
    /// Time at which the release ends by itself. Also identifies the release.
    pub until: Timestamp,
}

// === impl OrdersByBackend ===

impl OrdersByBackend {
    /// Returns the orders of one backend; adds the backend if it is not known yet.
    pub fn orders_of(&self, backend: &str) -> Orders {
        let mut all = self.lock_orders();
        match all.get(backend) {
            Some(one) => one.orders.clone(),
            None => all.entry(backend.to_owned()).or_default().orders.clone(),
        }
    }

    /// Returns the orders of a backend whose supervisor runs from now on.
    pub fn start(&self, backend: &str) -> Orders {
        let mut all = self.lock_orders();
        let one = all.entry(backend.to_owned()).or_default();
        one.runs = true;
        one.orders.clone()
    }

    /// Marks a backend that the config no longer has. Its releases are kept: if the config has the
    /// backend again before they end, its probe starts without the released cards.
    pub fn stop(&self, backend: &str) {
        if let Some(one) = self.lock_orders().get_mut(backend) {
            one.runs = false;
        }
    }

    /// Lists the names of the backends that run.
    pub fn running(&self) -> Vec<String> {
        let all = self.lock_orders();
        let running = all.iter().filter(|(_, one)| one.runs);
        running.map(|(name, _)| name.clone()).collect()
    }

    /// Releases cards of a backend for an operator. Replaces another release of the same cards.
    pub fn release_cards(
        &self,
        backend: &str,
        which: ReleaseScope,
        time: Duration,
    ) -> BackendRelease {
        BackendRelease {
            backend: backend.to_owned(),
            which,
            until: self.orders_of(backend).release_cards(which, time),
        }
    }

    /// Releases cards of a backend for the agent itself; `None` if they are released already.
    pub fn release_to_agent(
        &self,
        backend: &str,
        which: ReleaseScope,
        time: Duration,
    ) -> Option<BackendRelease> {
        Some(BackendRelease {
            backend: backend.to_owned(),
            which,
            until: self.orders_of(backend).release_to_agent(which, time)?,
        })
    }

    /// Ends a release, unless another one has replaced it since.
    pub fn take_back(&self, given: &BackendRelease) {
        self.orders_of(&given.backend)
            .take_back(given.which, given.until);
    }

    fn lock_orders(&self) -> MutexGuard<'_, BTreeMap<String, BackendOrders>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use model::CardRef;

    use super::*;

    #[test]
    fn a_release_concerns_one_backend_and_is_kept_for_one_that_does_not_run() {
        let orders = OrdersByBackend::default();
        let card = ReleaseScope::Card(CardRef::Index(0));
        let given = orders.release_cards("one", card, Duration::from_secs(60));
        assert!(
            orders.orders_of("one").is_release_ordered(card)
                && !orders.orders_of("other").is_release_ordered(card)
        );
        orders.take_back(&given);
        assert!(!orders.orders_of("one").is_release_ordered(card));
    }

    #[test]
    fn a_backend_that_is_turned_off_keeps_its_releases_and_takes_no_new_ones() {
        let orders = OrdersByBackend::default();
        orders.start("one");
        orders.start("other");
        orders.release_cards("one", ReleaseScope::All, Duration::from_secs(60));
        orders.stop("one");
        assert_eq!(orders.running(), ["other"]);
        assert!(orders.start("one").is_release_ordered(ReleaseScope::All));
        assert_eq!(orders.running(), ["one", "other"]);
    }
}
