//! What an administrator or a program has changed on a card, and what it holds besides its MIG
//! devices.

use serde::{Deserialize, Serialize};

/// What was set on a card; what was not is as the model has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Persistence mode; on unless it was switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<bool>,
    /// NVML's compute mode.
    pub compute_mode: u32,
    /// Error correction from the next reset on; on unless it was switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecc: Option<bool>,
    /// The power limit in milliwatts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_limit: Option<u32>,
    /// Memory and graphics clock for applications in MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_clocks: Option<(u32, u32)>,
    /// Whether processes are accounted for.
    pub accounting: bool,
}

/// A GPU instance that exists by itself, whether or not compute instances are in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Its id.
    pub id: u32,
    /// The name of its [`MigProfile`](super::MigProfile).
    pub profile: String,
    /// Its first memory slice.
    pub start: u32,
}

/// What a process does on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// It computes.
    Compute,
    /// It draws.
    Graphics,
    /// It computes through the MPS daemon.
    Mps,
}

/// A process that uses a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// What it does.
    pub work: Work,
    /// The memory it uses, in MiB.
    #[serde(default)]
    pub memory_mib: u64,
    /// The GPU and the compute instance it is in; absent for the whole card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<(u32, u32)>,
}

// === impl Settings ===

impl Settings {
    /// Whether nothing was set.
    pub(crate) fn untouched(&self) -> bool {
        *self == Self::default()
    }
}
