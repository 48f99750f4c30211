//! What a check-up of one device read: facts for the health verdict, no verdicts. Absent means not
//! read; what a device does not support is named beside.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallFailure, Condition, known};

/// One check-up of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reading {
    /// What was read.
    pub values: Values,
    /// States of the device that its vendor reads besides, each by its name. One that is not understood is
    /// left out.
    #[serde(
        default,
        deserialize_with = "known::list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
    /// Checks that the device does not support, by the names of the fields, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<String>,
    /// Calls that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<CallFailure>,
}

/// The tiers of checks, each on a clock of its own.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Is it there: handle, PCI presence, device nodes. The survey itself.
    Present,
    /// Does it work.
    Working,
    /// Does it work as well as it could.
    Performing,
    /// Is it getting worse.
    Trend,
    /// What a command of the user's says.
    Deep,
}

/// What a tier reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// Of [`Tier::Working`].
    Working(Working),
    /// Of [`Tier::Performing`].
    Performing(Performing),
    /// Of [`Tier::Trend`].
    Trend(Trend),
    /// Of [`Tier::Deep`].
    Deep(Deep),
}

/// Does the device work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Working {
    /// Memory errors since the driver was loaded that were not repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecc_uncorrected: Option<u64>,
    /// Memory repairs, such as rows to remap or pages to retire, wait for the next reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair_pending: Option<bool>,
    /// A memory repair failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair_failed: Option<bool>,
    /// What the driver asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryAction>,
}

/// What the driver asks for, in its own words.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryAction {
    /// Nothing.
    None,
    /// A reset of the device.
    Reset,
    /// A reboot of the node.
    Reboot,
    /// No new work until the old has ended, then a reset.
    DrainP2p,
    /// No new work, then a reset.
    DrainAndReset,
    /// Something that this version does not know.
    Other(u32),
}

/// Does the device work as well as it could.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Performing {
    /// Why its clocks are held down now, by the driver's names (`HwThermalSlowdown`), sorted; idle is
    /// no reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Vec<String>>,
    /// Lanes of the PCIe link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_width: Option<u32>,
    /// The most lanes that the device and its slot can have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_width_max: Option<u32>,
    /// The PCIe generation; an idle device lowers it by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_generation: Option<u32>,
    /// The highest generation that the device and its slot can have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_generation_max: Option<u32>,
    /// Busy compute engines at that moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization_percent: Option<u32>,
    /// Errors of all direct links to other cards: replays, recoveries and CRC errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_errors: Option<u64>,
    /// Direct links to other cards that exist and are down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links_down: Option<u32>,
    /// Core temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_celsius: Option<u32>,
    /// Where the hardware begins to slow down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowdown_celsius: Option<u32>,
    /// Where it switches itself off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_celsius: Option<u32>,
}

/// Is the device getting worse: counters, of which the growth counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Trend {
    /// Memory errors that were repaired, since the driver was loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecc_corrected: Option<u64>,
    /// Memory rows that were ever repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repaired_rows: Option<u64>,
    /// PCIe replays since the driver was loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_replays: Option<u64>,
    /// Energy drawn since the driver was loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_millijoules: Option<u64>,
}

/// What the user's command for deep checks said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Deep {
    /// Whether it was satisfied; absent where it could not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// The end of what it printed, or why it could not be run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
}

// === impl Values ===

impl Values {
    /// Whose values these are.
    pub fn tier(&self) -> Tier {
        match self {
            Self::Working(_) => Tier::Working,
            Self::Performing(_) => Tier::Performing,
            Self::Trend(_) => Tier::Trend,
            Self::Deep(_) => Tier::Deep,
        }
    }
}
