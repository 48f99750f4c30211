//! What others ask of the inventory: an operator, and who prepares devices.

use std::collections::BTreeMap;

use model::{DeviceId, Tier, Transition};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

/// Number of requests that may wait.
const QUEUE: usize = 16;

/// The right to ask the inventory for a change.
#[derive(Clone, Debug)]
pub struct Requests(mpsc::Sender<Request>);

/// A request, and whom to tell when what it changed is published.
#[derive(Debug)]
pub struct Request {
    /// The change that is asked for.
    pub change: Change,
    /// Told when the change is published.
    pub done: oneshot::Sender<()>,
}

/// A change that others ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Take devices out.
    Cordon {
        /// The devices.
        devices: Vec<DeviceId>,
        /// The operator's reason.
        reason: String,
    },
    /// Take them back, and forget what only an operator ends.
    Uncordon {
        /// The devices.
        devices: Vec<DeviceId>,
    },
    /// Devices were reset; nobody has looked at them since.
    Reset {
        /// The devices.
        devices: Vec<DeviceId>,
    },
    /// Somebody was on a device that was about to be handed over.
    Residue {
        /// The device.
        device: DeviceId,
        /// The process or memory that was found on it.
        evidence: String,
    },
    /// Nobody is on it any more.
    Clean {
        /// The device.
        device: DeviceId,
    },
}

/// What people ask for beyond the snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Details {
    /// The checks that a device does not support, by tier.
    pub unsupported: BTreeMap<DeviceId, BTreeMap<Tier, Vec<String>>>,
    /// The last changes of verdicts, the oldest first.
    pub history: Vec<Transition>,
}

// === impl Requests ===

impl Requests {
    /// A queue for requests: the end that asks, and the one that the inventory reads.
    pub fn channel() -> (Self, mpsc::Receiver<Request>) {
        let (sender, queue) = mpsc::channel(QUEUE);
        (Self(sender), queue)
    }

    /// Asks for a change, and waits until it is published.
    pub async fn ask(&self, change: Change) {
        let (done, told) = oneshot::channel();
        // An inventory that is gone is being started again; nothing is changed then.
        if self.0.send(Request { change, done }).await.is_ok() {
            let _ = told.await;
        }
    }
}
