//! Page [`DEVICES`](crate::DEVICES).

use std::sync::Arc;

use jiff::Timestamp;
use model::{Backend, Device, Entry, Samples, Snapshot, Telemetry, Verdict};
use serde::{Deserialize, Serialize};

/// Devices of the node: a snapshot, and the newest sample of each device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevicePage {
    /// Number of the snapshot. Counts up when a device, verdict or backend changes, not with every
    /// sample.
    pub generation: u64,
    /// Time at which the snapshot was made.
    pub taken: Timestamp,
    /// Every device, sorted by id.
    pub devices: Vec<ListedDevice>,
    /// Every backend, sorted by name.
    pub backends: Vec<Backend>,
}

/// A device on the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedDevice {
    /// Facts that the probe read.
    pub device: Arc<Device>,
    /// State of the device, and every cause and warning.
    pub verdict: Verdict,
    /// The newest sample; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
}

// === impl DevicePage ===

impl DevicePage {
    /// Builds the page from a snapshot and the newest samples.
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

    /// Returns the device with this id. Costs a binary search.
    pub fn find_listed(&self, id: &str) -> Option<&ListedDevice> {
        let found = self
            .devices
            .binary_search_by(|listed| listed.device.id.as_str().cmp(id));
        found.ok().map(|at| &self.devices[at])
    }

    /// Returns the snapshot, without the samples.
    pub fn to_snapshot(&self) -> Snapshot {
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
