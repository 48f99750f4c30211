//! Readings: the answers of one check-up of a device. They are facts for the health verdict. An
//! absent value was not read; checks that the device does not support are listed by name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallFailure, Condition, known};

/// Answers of one check-up of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reading {
    /// Values of the tier.
    pub values: Values,
    /// States of the device that its vendor names. A condition that cannot be parsed is left out.
    #[serde(
        default,
        deserialize_with = "known::list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
    /// Checks that the device does not support, as names of fields, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<String>,
    /// Driver calls that failed during the check-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<CallFailure>,
}

/// Tiers of checks. Each tier has its own period.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Presence: driver handle, PCI device, device nodes. The probe's survey reads it.
    Present,
    /// Function: uncorrected memory errors, memory repairs, recovery action.
    Working,
    /// Performance: clocks, PCIe link, direct links, temperature.
    Performing,
    /// Trend: counters whose growth precedes a failure.
    Trend,
    /// Result of the user's command.
    Deep,
}

/// Values of a check-up, by tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// Values of [`Tier::Working`].
    Working(Working),
    /// Values of [`Tier::Performing`].
    Performing(Performing),
    /// Values of [`Tier::Trend`].
    Trend(Trend),
    /// Values of [`Tier::Deep`].
    Deep(Deep),
}

/// Values that tell if a device works correctly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Working {
    /// Memory errors since the driver was loaded that the hardware could not correct.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecc_uncorrected: Option<u64>,
    /// True if memory repairs, such as rows to remap or pages to retire, wait for the next reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair_pending: Option<bool>,
    /// True if a memory repair failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair_failed: Option<bool>,
    /// Action that the driver asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryAction>,
}

/// Action that the driver asks for, named after NVML's values (field 230).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryAction {
    /// No action.
    None,
    /// Reset the device.
    Reset,
    /// Reboot the node.
    Reboot,
    /// End peer-to-peer work with other cards first.
    DrainP2p,
    /// Start no new work, then reset.
    DrainAndReset,
    /// Value of the driver without a name here. NVML has three: 5 recovers the IMEX domain, 6
    /// resets the PCIe bus, 7 reboots the system.
    Other(u32),
}

/// Values that tell if a device works at full speed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Performing {
    /// Reasons for which the clocks are lowered now, by the driver's names (`HwThermalSlowdown`),
    /// sorted. Being idle is not a reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Vec<String>>,
    /// Lanes of the PCIe link in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_width: Option<u32>,
    /// Highest number of lanes that device and slot support.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_width_max: Option<u32>,
    /// PCIe generation in use. An idle device lowers it to save power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_generation: Option<u32>,
    /// Highest PCIe generation that device and slot support.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_generation_max: Option<u32>,
    /// Use of the compute engines at that moment, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization_percent: Option<u32>,
    /// Errors of all direct links to other cards: replays, recoveries and CRC errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_errors: Option<u64>,
    /// Number of direct links to other cards that are down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links_down: Option<u32>,
    /// Core temperature, in degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_celsius: Option<u32>,
    /// Temperature at which the hardware lowers its clocks, in degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowdown_celsius: Option<u32>,
    /// Temperature at which the hardware switches itself off, in degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_celsius: Option<u32>,
}

/// Counters whose growth tells if a device is about to fail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Trend {
    /// Memory errors since the driver was loaded that the hardware corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecc_corrected: Option<u64>,
    /// Memory rows that were ever repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repaired_rows: Option<u64>,
    /// PCIe replays since the driver was loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_replays: Option<u64>,
    /// Energy used since the driver was loaded, in millijoules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_millijoules: Option<u64>,
}

/// Result of the user's command for deep checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Deep {
    /// True if the command succeeded in time; absent if it did not run or was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// End of the command's output, or the reason why it could not be run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
}

// === impl Values ===

impl Values {
    /// Returns the tier of the values.
    pub fn tier(&self) -> Tier {
        match self {
            Self::Working(_) => Tier::Working,
            Self::Performing(_) => Tier::Performing,
            Self::Trend(_) => Tier::Trend,
            Self::Deep(_) => Tier::Deep,
        }
    }
}
