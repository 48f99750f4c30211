//! Channels that the inventory publishes on. Only tasks of this crate hold senders, so that nobody
//! else can publish a snapshot.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use model::{Samples, Snapshot};
use probe::Releases;
use tokio::sync::watch;

use crate::{Details, StateDraft, StateFileStatus};

/// Senders of everything that the inventory publishes. They outlive a restart of its tasks.
#[derive(Clone, Debug)]
pub struct Published {
    pub(super) snapshots: watch::Sender<Arc<Snapshot>>,
    pub(super) samples: watch::Sender<Samples>,
    pub(super) released: watch::Sender<BTreeMap<String, Releases>>,
    pub(super) details: watch::Sender<Arc<Details>>,
    pub(super) drafts: watch::Sender<StateDraft>,
    pub(super) keeping: watch::Sender<StateFileStatus>,
    pub(super) restored: watch::Sender<bool>,
}

/// Receivers of everything that the inventory publishes.
#[derive(Clone, Debug)]
pub struct Readers {
    /// The newest snapshot.
    pub snapshots: watch::Receiver<Arc<Snapshot>>,
    /// The newest sample of each device. Changes with every sample, also when no snapshot follows.
    pub samples: watch::Receiver<Samples>,
    /// Cards that no probe may touch, by backend.
    pub released: watch::Receiver<BTreeMap<String, Releases>>,
    /// History of verdicts, and checks that devices do not support.
    pub details: watch::Receiver<Arc<Details>>,
    /// The newest state to write to the state file.
    pub drafts: watch::Receiver<StateDraft>,
    /// Result of the last read or write of the state file.
    pub keeping: watch::Receiver<StateFileStatus>,
    /// True once the state of an earlier agent was taken over, or cannot be read. Probes start only
    /// then: a card that an operator has released must not be touched even once.
    pub restored: watch::Receiver<bool>,
}

// === impl Published ===

impl Published {
    /// Creates the channels, with an empty snapshot.
    pub fn new() -> Self {
        Self {
            snapshots: watch::Sender::new(Arc::new(Snapshot::empty_at(Timestamp::now()))),
            samples: watch::Sender::default(),
            released: watch::Sender::default(),
            details: watch::Sender::default(),
            drafts: watch::Sender::default(),
            keeping: watch::Sender::default(),
            restored: watch::Sender::default(),
        }
    }

    /// Returns new receivers of all channels.
    pub fn readers(&self) -> Readers {
        Readers {
            snapshots: self.snapshots.subscribe(),
            samples: self.samples.subscribe(),
            released: self.released.subscribe(),
            details: self.details.subscribe(),
            drafts: self.drafts.subscribe(),
            keeping: self.keeping.subscribe(),
            restored: self.restored.subscribe(),
        }
    }
}

impl Default for Published {
    fn default() -> Self {
        Self::new()
    }
}
