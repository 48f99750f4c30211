//! What a device measures about itself, at one moment. Absent means not supported or not read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One sample of a device's sensors and counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Telemetry {
    /// Core temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_celsius: Option<u32>,
    /// Power drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_milliwatts: Option<u32>,
    /// Memory in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_used_bytes: Option<u64>,
    /// Busy compute engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization_percent: Option<u32>,
    /// Uncorrected and corrected memory errors since the driver was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecc: Option<Ecc>,
    /// Who computes on it, sorted by process; absent where nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<Process>>,
}

/// A process that uses a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Its id, as the host counts.
    pub pid: u32,
    /// Its name, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Device memory that it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// Memory error counters since the driver was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ecc {
    /// Errors the hardware repaired.
    pub corrected: u64,
    /// Errors it could not repair.
    pub uncorrected: u64,
}
