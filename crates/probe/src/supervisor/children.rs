//! State that outlives a supervisor: the child processes that a task of the agent waits for, and
//! the handover from one supervisor of a backend to the next.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::task::JoinSet;

use super::{
    aside::{ReleaseChange, ReleaseTable},
    orders::{DesiredState, ReleaseScope},
    process::{ExitedProcess, ProcessNumber, Role},
};
use crate::sighting::Releases;

/// Child processes that a task of the agent waits for, and the handovers between supervisors. Lives
/// as long as the agent. Cheap to clone.
// The agent also reaps orphans, as PID 1 of its container or as a subreaper. The reaper must skip
// the processes here: their exit status belongs to the task that waits for them.
#[derive(Clone, Debug, Default)]
pub struct ChildRegistry(Arc<SharedChildren>);

#[derive(Debug, Default)]
struct SharedChildren {
    pids: Mutex<BTreeSet<u32>>,
    /// Handovers by the name of the backend.
    estates: Mutex<BTreeMap<String, SupervisorHandover>>,
}

/// Handover from one supervisor of a backend to the next. Processes that have not ended may still
/// have driver handles, and count against the limit of abandoned processes.
#[derive(Debug, Default)]
pub(super) struct SupervisorHandover {
    /// Number of the last process that was started.
    pub(super) started: ProcessNumber,
    /// Processes that have not ended, including those that were asked to exit or killed.
    pub(super) live: BTreeMap<ProcessNumber, Role>,
    /// Processes that were asked to exit.
    pub(super) leaving: JoinSet<ExitedProcess>,
    /// Processes that were killed because they hang or failed.
    pub(super) abandoned: JoinSet<ExitedProcess>,
    /// Releases of cards.
    pub(super) aside: ReleaseTable,
    /// The agent's own work on cards.
    pub(super) occupied: BTreeSet<ReleaseScope>,
}

// === impl ChildRegistry ===

impl ChildRegistry {
    /// Returns true if a task waits for the process `pid`.
    pub fn contains(&self, pid: u32) -> bool {
        self.pids().contains(&pid)
    }

    /// Adds a process that a task waits for.
    pub fn add_pid(&self, pid: u32) {
        self.pids().insert(pid);
    }

    /// Removes a process.
    pub fn remove_pid(&self, pid: u32) {
        self.pids().remove(&pid);
    }

    /// Stores the handover for the next supervisor of the backend.
    pub(super) fn park_handover(&self, backend: String, estate: SupervisorHandover) {
        self.estates().insert(backend, estate);
    }

    /// Takes the handover of the last supervisor of the backend; an empty one if there is none.
    pub(super) fn adopt_handover(&self, backend: &str) -> SupervisorHandover {
        self.estates().remove(backend).unwrap_or_default()
    }

    fn pids(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.0.pids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn estates(&self) -> MutexGuard<'_, BTreeMap<String, SupervisorHandover>> {
        let estates = self.0.estates.lock();
        estates.unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl SupervisorHandover ===

impl SupervisorHandover {
    /// Applies the ordered releases and the agent's work on cards.
    pub(super) fn apply_desired(&mut self, wanted: &DesiredState) -> ReleaseChange {
        self.occupied.clone_from(&wanted.occupied);
        self.aside.apply_releases(&wanted.released, self.started)
    }

    /// Describes the releases for the state of the backend.
    pub(super) fn describe_releases(&self) -> Releases {
        self.aside.describe_releases(&self.live, &self.occupied)
    }
}
