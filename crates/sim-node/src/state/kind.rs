//! What all cards of a kind have in common.

use serde::{Deserialize, Serialize, Serializer, ser::Error as _};

use super::{Board, Sensors};

/// What all cards of a kind have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The product name.
    pub name: String,
    /// NVML's brand, as its number.
    #[serde(default = "defaults::brand")]
    pub brand: u32,
    /// NVML's architecture, as its number; in a profile it follows from the compute capability.
    #[serde(default)]
    pub architecture: u32,
    /// The CUDA compute capability.
    pub compute_capability: (i32, i32),
    /// The PCI device id in hex, e.g. `20b0`.
    pub device_id: String,
    /// The PCI subsystem as `vendor:device` in hex.
    #[serde(default = "defaults::subsystem")]
    pub subsystem: String,
    /// The PCI class in hex: `030200` for a card without screens, `030000` for one with.
    #[serde(default = "defaults::class")]
    pub class: String,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The part of it that the driver keeps for itself.
    #[serde(default)]
    pub reserved_mib: u64,
    /// The part of it that the processor can see at a time; all of it if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bar1_mib: Option<u64>,
    /// Whether its memory has error correction.
    #[serde(default = "defaults::ecc")]
    pub ecc: bool,
    /// Streaming multiprocessors.
    #[serde(default)]
    pub multiprocessors: u32,
    /// Power limits in watts.
    #[serde(default)]
    pub power: Power,
    /// Highest clocks in MHz.
    #[serde(default)]
    pub clocks: Clocks,
    /// Temperatures in degrees at which it acts.
    #[serde(default)]
    pub thresholds: Thresholds,
    /// The PCIe generation it can do.
    #[serde(default = "defaults::pcie_generation")]
    pub pcie_generation: u32,
    /// NVML's number of its NVLink version; zero is none.
    #[serde(default)]
    pub nvlink_version: u32,
    /// NVLinks to each NVSwitch, where the machine has such.
    #[serde(default)]
    pub links_per_switch: u32,
    /// What it measures when nothing runs.
    #[serde(default = "defaults::idle", serialize_with = "sparse")]
    pub idle: Sensors,
    /// What tools show of it and nothing depends on.
    #[serde(default, skip_serializing_if = "Board::blank")]
    pub board: Board,
    /// The shapes it can be cut into; empty where it cannot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
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
    /// The bytes of its memory that the processor can see at a time.
    pub fn bar1_bytes(&self) -> u64 {
        let whole = || self.memory_mib.checked_next_power_of_two().unwrap_or(0);
        self.bar1_mib.unwrap_or_else(whole).saturating_mul(1 << 20)
    }

    /// The MIG profile of this name.
    pub fn shape(&self, name: &str) -> Option<&MigProfile> {
        self.mig.iter().find(|shape| shape.name == name)
    }
}

// === impl Power ===

impl Default for Power {
    fn default() -> Self {
        Self { min: 100, max: 300 }
    }
}

// === impl Clocks ===

impl Default for Clocks {
    fn default() -> Self {
        Self {
            sm: 1500,
            memory: 1500,
            video: 1200,
        }
    }
}

// === impl Thresholds ===

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            shutdown: 95,
            slowdown: 90,
            max: 85,
        }
    }
}

/// Writes the sensors that measure something: the others are zero where they are left out.
fn sparse<S: Serializer>(sensors: &Sensors, serializer: S) -> Result<S::Ok, S::Error> {
    let all = serde_json::to_value(sensors).map_err(S::Error::custom)?;
    let all = all.as_object().into_iter().flatten();
    serializer.collect_map(all.filter(|(_, value)| **value != 0))
}

/// What a model has that does not say.
mod defaults {
    use super::Sensors;

    /// NVML's `NVML_BRAND_NVIDIA`.
    pub(super) fn brand() -> u32 {
        14
    }

    pub(super) fn subsystem() -> String {
        "10de:0000".to_owned()
    }

    pub(super) fn class() -> String {
        "030200".to_owned()
    }

    pub(super) fn ecc() -> bool {
        true
    }

    pub(super) fn pcie_generation() -> u32 {
        4
    }

    pub(super) fn idle() -> Sensors {
        Sensors {
            temperature: 30,
            power: 40_000,
            clock_sm: 210,
            clock_memory: 1500,
            clock_reasons: 1,
            pcie_generation: 4,
            pcie_width: 16,
            ..Sensors::default()
        }
    }
}
