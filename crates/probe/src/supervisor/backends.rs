//! Orders to the supervisors of all backends.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;

use super::orders::{Orders, Which};

/// The orders of every backend, by its name. Cheap to clone. A backend that does not run yet obeys
/// its orders when it starts.
#[derive(Clone, Debug, Default)]
pub struct OrdersByBackend(Arc<Mutex<BTreeMap<String, Orders>>>);

/// Cards of a backend that were given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// The backend.
    pub backend: String,
    /// The cards.
    pub which: Which,
    /// The time at which they are taken back.
    pub until: Timestamp,
}

// === impl OrdersByBackend ===

impl OrdersByBackend {
    /// The orders of one backend.
    pub fn of(&self, backend: &str) -> Orders {
        let mut all = self.all();
        match all.get(backend) {
            Some(orders) => orders.clone(),
            None => all.entry(backend.to_owned()).or_default().clone(),
        }
    }

    /// The names of the backends.
    pub fn names(&self) -> Vec<String> {
        self.all().keys().cloned().collect()
    }

    /// Forgets a backend that there is no more.
    pub fn remove(&self, backend: &str) {
        self.all().remove(backend);
    }

    /// Gives cards of a backend up, as [`Orders::release`] does.
    pub fn release(&self, backend: &str, which: Which, time: Duration) -> GivenUp {
        GivenUp {
            backend: backend.to_owned(),
            which,
            until: self.of(backend).release(which, time),
        }
    }

    /// Gives them up for the agent itself, as [`Orders::lend`] does.
    pub fn lend(&self, backend: &str, which: Which, time: Duration) -> Option<GivenUp> {
        Some(GivenUp {
            backend: backend.to_owned(),
            which,
            until: self.of(backend).lend(which, time)?,
        })
    }

    /// Takes back what was given up and has not been given to somebody else since.
    pub fn take_back(&self, given: &GivenUp) {
        self.of(&given.backend).take_back(given.which, given.until);
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Orders>> {
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
        orders.remove("other");
        assert_eq!(orders.names(), ["one"]);
    }
}
