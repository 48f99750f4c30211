//! Models of cards.

use serde::{Deserialize, Serialize, Serializer, ser::Error as _};

use super::{Board, Sensors};

/// Facts that all cards of a model share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuModel {
    /// Product name.
    pub name: String,
    /// NVML's number of the brand (`nvmlBrandType_t`).
    #[serde(default = "defaults::brand")]
    pub brand: u32,
    /// NVML's number of the architecture; a profile may leave it out, as it follows from the
    /// compute capability.
    #[serde(default)]
    pub architecture: u32,
    /// CUDA compute capability.
    pub compute_capability: (i32, i32),
    /// PCI device id in hex, e.g. `20b0`.
    pub device_id: String,
    /// PCI subsystem as `vendor:device` in hex.
    #[serde(default = "defaults::subsystem")]
    pub subsystem: String,
    /// PCI class in hex: `030200` for a card without displays, `030000` for one with displays.
    #[serde(default = "defaults::class")]
    pub class: String,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Memory in MiB that the driver reserves.
    #[serde(default)]
    pub reserved_mib: u64,
    /// Size of BAR1 in MiB: the memory that the processor can map at a time. All memory if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bar1_mib: Option<u64>,
    /// True if the memory has error correction.
    #[serde(default = "defaults::ecc")]
    pub ecc: bool,
    /// Number of streaming multiprocessors.
    #[serde(default)]
    pub multiprocessors: u32,
    /// Power limits in watts.
    #[serde(default)]
    pub power: PowerLimits,
    /// Highest clocks in MHz.
    #[serde(default)]
    pub clocks: MaxClocks,
    /// Temperature limits in degrees Celsius.
    #[serde(default)]
    pub thresholds: TemperatureLimits,
    /// Highest PCIe generation.
    #[serde(default = "defaults::pcie_generation")]
    pub pcie_generation: u32,
    /// NVML's number of the NVLink version; zero means no NVLink.
    #[serde(default)]
    pub nvlink_version: u32,
    /// NVLinks to each NVSwitch, on machines that have NVSwitches.
    #[serde(default)]
    pub links_per_switch: u32,
    /// Sensor values of an idle card.
    #[serde(default = "defaults::idle", serialize_with = "sparse")]
    pub idle: Sensors,
    /// Facts that tools show and no behaviour depends on.
    #[serde(default, skip_serializing_if = "Board::blank")]
    pub board: Board,
    /// MIG profiles; empty if the model does not support MIG.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mig: Vec<MigProfile>,
}

/// Power limits in watts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerLimits {
    /// Lowest limit that can be set.
    pub min: u32,
    /// Default limit, which is also the highest.
    pub max: u32,
}

/// Highest clocks in MHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaxClocks {
    /// Graphics and multiprocessors.
    pub sm: u32,
    /// Memory.
    pub memory: u32,
    /// Video engines.
    pub video: u32,
}

/// Temperature limits in degrees Celsius.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemperatureLimits {
    /// Temperature at which the card shuts down.
    pub shutdown: u32,
    /// Temperature at which the card slows down.
    pub slowdown: u32,
    /// Highest temperature for normal operation.
    pub max: u32,
}

/// A MIG profile: the shape of a GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigProfile {
    /// Name, e.g. `1g.5gb`.
    pub name: String,
    /// Number of NVML's constant `NVML_GPU_INSTANCE_PROFILE_…`.
    pub profile: u32,
    /// Profile id of the driver on this model.
    pub id: u32,
    /// Compute slices out of seven.
    pub slices: u32,
    /// Memory slices out of eight.
    pub memory_slices: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Number of such instances that fit on one card.
    pub count: u32,
    /// Number of copy engines.
    pub copy: u32,
    /// Number of decoders.
    #[serde(default)]
    pub decoders: u32,
    /// Number of JPEG engines.
    #[serde(default)]
    pub jpeg: u32,
    /// Number of optical flow engines.
    #[serde(default)]
    pub ofa: u32,
}

// === impl GpuModel ===

impl GpuModel {
    /// Size of BAR1 in bytes. By default the next power of two above the card's memory.
    pub fn bar1_bytes(&self) -> u64 {
        let whole = || self.memory_mib.checked_next_power_of_two().unwrap_or(0);
        self.bar1_mib.unwrap_or_else(whole).saturating_mul(1 << 20)
    }

    /// Finds the MIG profile of this name.
    pub fn find_shape(&self, name: &str) -> Option<&MigProfile> {
        self.mig.iter().find(|shape| shape.name == name)
    }
}

// === impl PowerLimits ===

impl Default for PowerLimits {
    fn default() -> Self {
        Self { min: 100, max: 300 }
    }
}

// === impl MaxClocks ===

impl Default for MaxClocks {
    fn default() -> Self {
        Self {
            sm: 1500,
            memory: 1500,
            video: 1200,
        }
    }
}

// === impl TemperatureLimits ===

impl Default for TemperatureLimits {
    fn default() -> Self {
        Self {
            shutdown: 95,
            slowdown: 90,
            max: 85,
        }
    }
}

/// Serialises the sensors that are not zero. The others are zero by default.
fn sparse<S: Serializer>(sensors: &Sensors, serializer: S) -> Result<S::Ok, S::Error> {
    let all = serde_json::to_value(sensors).map_err(S::Error::custom)?;
    let all = all.as_object().into_iter().flatten();
    serializer.collect_map(all.filter(|(_, value)| **value != 0))
}

/// Defaults of a model's keys.
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
