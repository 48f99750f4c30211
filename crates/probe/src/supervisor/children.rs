//! State that outlives a supervisor: the child processes that a task of the agent waits for, and
//! the handover from one supervisor of a backend to the next.

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

/// Child processes that a task of the agent waits for, and the handovers between supervisors. Lives
/// as long as the agent. Cheap to clone.
// The agent also reaps orphans, as PID 1 of its container or as a subreaper. The reaper must skip
// the processes here: their exit status belongs to the task that waits for them.
#[derive(Clone, Debug, Default)]
pub struct Children(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    pids: Mutex<BTreeSet<u32>>,
    /// Handovers by the name of the backend.
    estates: Mutex<BTreeMap<String, Estate>>,
}

/// Handover from one supervisor of a backend to the next. Processes that have not ended may still
/// have driver handles, and count against the limit of abandoned processes.
#[derive(Debug, Default)]
pub(super) struct Estate {
    /// Number of the last process that was started.
    pub(super) started: Number,
    /// Processes that have not ended, including those that were asked to exit or killed.
    pub(super) live: BTreeMap<Number, Role>,
    /// Processes that were asked to exit.
    pub(super) leaving: JoinSet<Left>,
    /// Processes that were killed because they hang or failed.
    pub(super) abandoned: JoinSet<Left>,
    /// Releases of cards.
    pub(super) aside: Aside,
    /// The agent's own work on cards.
    pub(super) occupied: BTreeSet<Which>,
}

// === impl Children ===

impl Children {
    /// Returns true if a task waits for the process `pid`.
    pub fn contains(&self, pid: u32) -> bool {
        self.pids().contains(&pid)
    }

    /// Adds a process that a task waits for.
    pub fn add(&self, pid: u32) {
        self.pids().insert(pid);
    }

    /// Removes a process.
    pub fn remove(&self, pid: u32) {
        self.pids().remove(&pid);
    }

    /// Stores the handover for the next supervisor of the backend.
    pub(super) fn leave(&self, backend: String, estate: Estate) {
        self.estates().insert(backend, estate);
    }

    /// Takes the handover of the last supervisor of the backend; an empty one if there is none.
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
    /// Applies the ordered releases and the agent's work on cards.
    pub(super) fn obey(&mut self, wanted: &Wanted) -> Change {
        self.occupied.clone_from(&wanted.occupied);
        self.aside.obey(&wanted.released, self.started)
    }

    /// Describes the releases for the state of the backend.
    pub(super) fn released(&self) -> Released {
        self.aside.released(&self.live, &self.occupied)
    }
}
