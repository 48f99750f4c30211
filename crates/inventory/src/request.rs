//! Changes that other parts request of the inventory: the operator, and the preparation of devices.

use std::collections::BTreeMap;

use model::{DeviceId, Tier, Transition};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

/// Limit of requests that wait.
const QUEUE: usize = 16;

/// Handle to request changes of the inventory. Clones share one queue.
#[derive(Clone, Debug)]
pub struct ChangeRequests(mpsc::Sender<ChangeRequest>);

/// A request, and the channel for its completion.
#[derive(Debug)]
pub struct ChangeRequest {
    /// The requested change.
    pub change: DeviceChange,
    /// Receives a message once the change is published.
    pub done: oneshot::Sender<()>,
}

/// A change of devices that others request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChange {
    /// Cordon devices.
    Cordon {
        /// Ids of the devices. Unknown ones are ignored.
        devices: Vec<DeviceId>,
        /// The operator's reason. May be empty.
        reason: String,
    },
    /// End the cordon. Also forgets recurrences, and ends events that only an operator ends.
    Uncordon {
        /// Ids of the devices. Unknown ones are ignored.
        devices: Vec<DeviceId>,
    },
    /// The agent reset the devices, and no probe has looked at them since.
    Reset {
        /// Ids of the devices. Unknown ones are ignored.
        devices: Vec<DeviceId>,
    },
    /// A foreign process was on a device that was about to be handed over, or its `preStart`
    /// failed.
    Residue {
        /// Id of the device. Ignored if unknown.
        device: DeviceId,
        /// Description of the process, memory or failure.
        evidence: String,
    },
    /// No foreign process is on the device any more.
    Clean {
        /// Id of the device. Ignored if unknown.
        device: DeviceId,
    },
}

/// Details that are published beside the snapshot, because they change without it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Details {
    /// Checks that a device does not support, by tier.
    pub unsupported_by_device: BTreeMap<DeviceId, BTreeMap<Tier, Vec<String>>>,
    /// The last changes of verdicts, the oldest first.
    pub history: Vec<Transition>,
}

// === impl ChangeRequests ===

impl ChangeRequests {
    /// Creates the queue: the handle for callers, and the receiver for the inventory.
    pub fn open_queue() -> (Self, mpsc::Receiver<ChangeRequest>) {
        let (sender, queue) = mpsc::channel(QUEUE);
        (Self(sender), queue)
    }

    /// Requests a change and waits until it is published. Returns early, without the change, while
    /// the inventory is being restarted.
    pub async fn request_change(&self, change: DeviceChange) {
        let (done, told) = oneshot::channel();
        // A closed queue means that the inventory is being restarted; the change is lost then.
        if self.0.send(ChangeRequest { change, done }).await.is_ok() {
            let _ = told.await;
        }
    }
}
