//! What all cards of a kind have in common.

use serde::{Deserialize, Serialize};

use super::Sensors;

/// What all cards of a kind have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The product name.
    pub name: String,
    /// NVML's brand, as its number.
    pub brand: u32,
    /// NVML's architecture, as its number.
    pub architecture: u32,
    /// The CUDA compute capability.
    pub compute_capability: (i32, i32),
    /// The PCI device id in hex, e.g. `20b0`.
    pub device_id: String,
    /// The PCI subsystem as `vendor:device` in hex.
    pub subsystem: String,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The part of it that the driver keeps for itself.
    pub reserved_mib: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Power limits in watts.
    pub power: Power,
    /// Highest clocks in MHz.
    pub clocks: Clocks,
    /// Temperatures in degrees at which it acts.
    pub thresholds: Thresholds,
    /// The PCIe generation it can do.
    pub pcie_generation: u32,
    /// NVML's number of its NVLink version; zero is none.
    #[serde(default)]
    pub nvlink_version: u32,
    /// NVLinks to each NVSwitch, where the machine has such.
    #[serde(default)]
    pub links_per_switch: u32,
    /// What it measures when nothing runs.
    pub idle: Sensors,
    /// The shapes it can be cut into; empty where it cannot.
    #[serde(default)]
    pub mig: Vec<MigProfile>,
}

/// Power limits in watts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// The lowest limit that can be set.
    pub min: u32,
    /// The limit, and the highest that can be set.
    pub max: u32,
}

/// Highest clocks in MHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clocks {
    /// Graphics and multiprocessors.
    pub sm: u32,
    /// Memory.
    pub memory: u32,
    /// Video engines.
    pub video: u32,
}

/// Temperatures in degrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// The card switches itself off.
    pub shutdown: u32,
    /// The card runs slower.
    pub slowdown: u32,
    /// The highest that is wanted in operation.
    pub max: u32,
}

/// A shape of a GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigProfile {
    /// E.g. `1g.5gb`.
    pub name: String,
    /// NVML's `NVML_GPU_INSTANCE_PROFILE_…`.
    pub profile: u32,
    /// The id that the driver gives it on this model.
    pub id: u32,
    /// Compute slices out of seven.
    pub slices: u32,
    /// Memory slices out of eight.
    pub memory_slices: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// How many fit on one card.
    pub count: u32,
    /// Copy engines.
    pub copy: u32,
    /// Decoders.
    #[serde(default)]
    pub decoders: u32,
    /// JPEG engines.
    #[serde(default)]
    pub jpeg: u32,
    /// Optical flow engines.
    #[serde(default)]
    pub ofa: u32,
}

// === impl Model ===

impl Model {
    /// The MIG profile of this name.
    pub fn shape(&self, name: &str) -> Option<&MigProfile> {
        self.mig.iter().find(|shape| shape.name == name)
    }
}
