//! Snapshot: everything known of the node's devices at one moment. A snapshot never changes; an
//! event makes a new one. Sensor values are not part of it: they are in
//! [`Samples`](crate::Samples), so that an idle node makes no new snapshots.

use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Backend, CauseKind, Device, Verdict};

/// Devices and backends of the node at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// Number of the snapshot, counted from the start of this agent.
    pub generation: u64,
    /// Time at which the snapshot was made.
    #[schemars(with = "String")]
    pub taken: Timestamp,
    /// Every device, sorted by id.
    pub devices: Vec<Entry>,
    /// Every backend, sorted by name.
    pub backends: Vec<Backend>,
}

/// Device with its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Facts of the device. All snapshots since the probe's report share them, so that a new
    /// snapshot copies only a pointer.
    pub device: Arc<Device>,
    /// Verdict on the device.
    pub verdict: Verdict,
}

// === impl Snapshot ===

impl Snapshot {
    /// Returns the backend with this name.
    pub fn find_backend(&self, name: &str) -> Option<&Backend> {
        self.backends.iter().find(|backend| backend.name == name)
    }

    /// Creates a snapshot without devices and backends.
    pub fn empty_at(taken: Timestamp) -> Self {
        Self {
            generation: 0,
            taken,
            devices: Vec::new(),
            backends: Vec::new(),
        }
    }

    /// Returns the entry of a device. Costs a binary search.
    pub fn find_entry(&self, id: &str) -> Option<&Entry> {
        self.devices
            .binary_search_by(|entry| entry.device.id.as_str().cmp(id))
            .ok()
            .map(|at| &self.devices[at])
    }
}

// === impl Entry ===

impl Entry {
    /// Returns true if the driver no longer lists the device.
    pub fn is_gone(&self) -> bool {
        let mut causes = self.verdict.causes.iter();
        causes.any(|cause| cause.kind == CauseKind::Gone)
    }

    /// Returns the facts for a change. Copies them if they are shared.
    pub fn device_mut(&mut self) -> &mut Device {
        Arc::make_mut(&mut self.device)
    }
}

impl From<Device> for Entry {
    /// Creates an entry with the verdict Healthy.
    fn from(device: Device) -> Self {
        Self {
            device: Arc::new(device),
            verdict: Verdict::default(),
        }
    }
}
