//! All that is known of the node's devices at one moment. Replaced whole when something happened,
//! never changed. Sensor values are not in it: they come in [`Samples`](crate::Samples).

use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Backend, CauseKind, Device, Verdict};

/// The node at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// Counts up with every snapshot of this agent.
    pub generation: u64,
    /// When it was made.
    #[schemars(with = "String")]
    pub taken: Timestamp,
    /// Every device, sorted by id.
    pub devices: Vec<Entry>,
    /// Every backend, sorted by name.
    pub backends: Vec<Backend>,
}

/// A device with what is held of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// The facts. Shared with everybody who knows the device, from the probe's report on.
    pub device: Arc<Device>,
    /// The verdict.
    pub verdict: Verdict,
}

// === impl Snapshot ===

impl Snapshot {
    /// The backend of that name.
    pub fn backend(&self, name: &str) -> Option<&Backend> {
        self.backends.iter().find(|backend| backend.name == name)
    }

    /// A snapshot in which nothing is known yet.
    pub fn empty(taken: Timestamp) -> Self {
        Self {
            generation: 0,
            taken,
            devices: Vec::new(),
            backends: Vec::new(),
        }
    }

    /// The entry of a device. Costs a binary search.
    pub fn find(&self, id: &str) -> Option<&Entry> {
        self.devices
            .binary_search_by(|entry| entry.device.id.as_str().cmp(id))
            .ok()
            .map(|at| &self.devices[at])
    }
}

// === impl Entry ===

impl Entry {
    /// Returns true for a device that the driver does not list any more.
    pub fn is_gone(&self) -> bool {
        let mut causes = self.verdict.causes.iter();
        causes.any(|cause| cause.kind == CauseKind::Gone)
    }

    /// The facts, to be changed. Copies them if somebody else has them too.
    pub fn device_mut(&mut self) -> &mut Device {
        Arc::make_mut(&mut self.device)
    }
}

impl From<Device> for Entry {
    /// A device of which nothing bad is known.
    fn from(device: Device) -> Self {
        Self {
            device: Arc::new(device),
            verdict: Verdict::default(),
        }
    }
}
