//! What outlives a supervisor: which children of the agent somebody waits for, and what one
//! supervisor of a backend leaves to the next.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::task::JoinSet;

use super::{
    aside::{Aside, Change},
    orders::{Wanted, Which},
    process::{Left, Number, Role},
};
use crate::sighting::Released;

/// The children of the agent that somebody waits for, so that whoever reaps the orphans of a
/// container leaves these alone. Kept for as long as the agent runs: a supervisor that follows
/// another one learns from it which processes have not ended.
#[derive(Clone, Debug, Default)]
pub struct Children(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    pids: Mutex<BTreeSet<u32>>,
    /// By backend.
    estates: Mutex<BTreeMap<String, Estate>>,
}

/// What one supervisor of a backend leaves to the next: processes that have not ended may hold driver
/// handles, and count among those given up, whoever started them.
#[derive(Debug, Default)]
pub(super) struct Estate {
    /// The number of the last process.
    pub(super) started: Number,
    /// Processes that have not ended, also those that were let go.
    pub(super) live: BTreeMap<Number, Role>,
    /// Processes that were asked to end.
    pub(super) leaving: JoinSet<Left>,
    /// Processes that were killed because they are stuck.
    pub(super) abandoned: JoinSet<Left>,
    /// What is released.
    pub(super) aside: Aside,
    /// Work of the agent on cards.
    pub(super) occupied: BTreeSet<Which>,
}

// === impl Children ===

impl Children {
    /// Whether somebody waits for `pid`.
    pub fn contains(&self, pid: u32) -> bool {
        self.pids().contains(&pid)
    }

    /// Writes down a child that somebody waits for.
    pub fn add(&self, pid: u32) {
        self.pids().insert(pid);
    }

    /// Crosses it off.
    pub fn remove(&self, pid: u32) {
        self.pids().remove(&pid);
    }

    /// Leaves this to the next supervisor of the backend.
    pub(super) fn leave(&self, backend: String, estate: Estate) {
        self.estates().insert(backend, estate);
    }

    /// Takes over what the last supervisor of the backend left.
    pub(super) fn inherit(&self, backend: &str) -> Estate {
        self.estates().remove(backend).unwrap_or_default()
    }

    fn pids(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.0.pids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn estates(&self) -> MutexGuard<'_, BTreeMap<String, Estate>> {
        let estates = self.0.estates.lock();
        estates.unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Estate ===

impl Estate {
    /// Takes in which releases are ordered, and which work goes on.
    pub(super) fn obey(&mut self, wanted: &Wanted) -> Change {
        self.occupied.clone_from(&wanted.occupied);
        self.aside.obey(&wanted.released, self.started)
    }

    /// What to tell of releases.
    pub(super) fn released(&self) -> Released {
        self.aside.released(&self.live, &self.occupied)
    }
}
