//! The page [`DEVICES`](crate::DEVICES).

use std::sync::Arc;

use jiff::Timestamp;
use model::{Backend, Device, Entry, Samples, Snapshot, Telemetry, Verdict};
use serde::{Deserialize, Serialize};

/// The node's devices: a snapshot, with the newest sample of each device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Devices {
    /// Number of the snapshot. It counts up when something happened, not with every sample.
    pub generation: u64,
    /// Time the snapshot was made.
    pub taken: Timestamp,
    /// Every device, sorted by id.
    pub devices: Vec<ListedDevice>,
    /// Every backend, sorted by name.
    pub backends: Vec<Backend>,
}

/// A device on the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedDevice {
    /// The facts.
    pub device: Arc<Device>,
    /// The verdict.
    pub verdict: Verdict,
    /// The newest sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
}

// === impl Devices ===

impl Devices {
    /// The page of a snapshot and the samples that came so far.
    pub fn new(snapshot: &Snapshot, samples: &Samples) -> Self {
        let listed = |entry: &Entry| ListedDevice {
            device: Arc::clone(&entry.device),
            verdict: entry.verdict.clone(),
            telemetry: samples.telemetry(&entry.device.id).cloned(),
        };
        Self {
            generation: snapshot.generation,
            taken: snapshot.taken,
            devices: snapshot.devices.iter().map(listed).collect(),
            backends: snapshot.backends.clone(),
        }
    }

    /// The device with an id. Costs a binary search.
    pub fn find(&self, id: &str) -> Option<&ListedDevice> {
        let found = self
            .devices
            .binary_search_by(|listed| listed.device.id.as_str().cmp(id));
        found.ok().map(|at| &self.devices[at])
    }

    /// The snapshot, without the samples.
    pub fn snapshot(&self) -> Snapshot {
        let entry = |listed: &ListedDevice| Entry {
            device: Arc::clone(&listed.device),
            verdict: listed.verdict.clone(),
        };
        Snapshot {
            generation: self.generation,
            taken: self.taken,
            devices: self.devices.iter().map(entry).collect(),
            backends: self.backends.clone(),
        }
    }
}
