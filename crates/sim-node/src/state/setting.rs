//! Settings, GPU instances and processes of a card: the state that administrators and programs
//! change.

use serde::{Deserialize, Serialize};

/// Settings of a card. An absent one has the model's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CardSettings {
    /// Persistence mode; on if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<bool>,
    /// NVML's number of the compute mode.
    pub compute_mode: u32,
    /// Error correction from the next reset on; on if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecc: Option<bool>,
    /// Power limit in milliwatts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_limit: Option<u32>,
    /// Application clocks in MHz: memory, graphics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_clocks: Option<(u32, u32)>,
    /// True if accounting mode is on.
    pub accounting: bool,
}

/// A GPU instance that exists by itself, with or without compute instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuInstance {
    /// Id of the instance.
    pub id: u32,
    /// Name of its [`MigProfile`](super::MigProfile).
    pub profile: String,
    /// First memory slice.
    pub start: u32,
}

/// Kind of work of a process on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessWork {
    /// Computes.
    Compute,
    /// Draws.
    Graphics,
    /// Computes through the MPS daemon.
    Mps,
}

/// A process that uses a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuProcess {
    /// Process id.
    pub pid: u32,
    /// Kind of work.
    pub work: ProcessWork,
    /// Memory in use, in MiB.
    #[serde(default)]
    pub memory_mib: u64,
    /// Ids of the GPU instance and the compute instance; absent for the whole card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<(u32, u32)>,
}

// === impl CardSettings ===

impl CardSettings {
    /// True if no setting was changed (for `skip_serializing_if`).
    pub(crate) fn untouched(&self) -> bool {
        *self == Self::default()
    }
}
