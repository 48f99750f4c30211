//! Orders to the supervisors of all backends, by the backend's name.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;

use super::orders::{Orders, Which};

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
pub struct GivenUp {
    /// Name of the backend.
    pub backend: String,
    /// Cards that are released.
    pub which: Which,
    /// Time at which the release ends by itself. Also identifies the release.
    pub until: Timestamp,
}

// === impl OrdersByBackend ===

impl OrdersByBackend {
    /// Returns the orders of one backend; adds the backend if it is not known yet.
    pub fn of(&self, backend: &str) -> Orders {
        let mut all = self.all();
        match all.get(backend) {
            Some(one) => one.orders.clone(),
            None => all.entry(backend.to_owned()).or_default().orders.clone(),
        }
    }

    /// Returns the orders of a backend whose supervisor runs from now on.
    pub fn start(&self, backend: &str) -> Orders {
        let mut all = self.all();
        let one = all.entry(backend.to_owned()).or_default();
        one.runs = true;
        one.orders.clone()
    }

    /// Marks a backend that the config no longer has. Its releases are kept: if the config has the
    /// backend again before they end, its probe starts without the released cards.
    pub fn stop(&self, backend: &str) {
        if let Some(one) = self.all().get_mut(backend) {
            one.runs = false;
        }
    }

    /// Lists the names of the backends that run.
    pub fn running(&self) -> Vec<String> {
        let all = self.all();
        let running = all.iter().filter(|(_, one)| one.runs);
        running.map(|(name, _)| name.clone()).collect()
    }

    /// Releases cards of a backend for an operator. Replaces another release of the same cards.
    pub fn release(&self, backend: &str, which: Which, time: Duration) -> GivenUp {
        GivenUp {
            backend: backend.to_owned(),
            which,
            until: self.of(backend).release(which, time),
        }
    }

    /// Releases cards of a backend for the agent itself; `None` if they are released already.
    pub fn lend(&self, backend: &str, which: Which, time: Duration) -> Option<GivenUp> {
        Some(GivenUp {
            backend: backend.to_owned(),
            which,
            until: self.of(backend).lend(which, time)?,
        })
    }

    /// Ends a release, unless another one has replaced it since.
    pub fn take_back(&self, given: &GivenUp) {
        self.of(&given.backend).take_back(given.which, given.until);
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, BackendOrders>> {
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
        let card = Which::Card(CardRef::Index(0));
        let given = orders.release("one", card, Duration::from_secs(60));
        assert!(orders.of("one").holds(card) && !orders.of("other").holds(card));
        orders.take_back(&given);
        assert!(!orders.of("one").holds(card));
    }

    #[test]
    fn a_backend_that_is_turned_off_keeps_its_releases_and_takes_no_new_ones() {
        let orders = OrdersByBackend::default();
        orders.start("one");
        orders.start("other");
        orders.release("one", Which::All, Duration::from_secs(60));
        orders.stop("one");
        assert_eq!(orders.running(), ["other"]);
        assert!(orders.start("one").holds(Which::All));
        assert_eq!(orders.running(), ["one", "other"]);
    }
}
