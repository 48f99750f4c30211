//! Page [`HEALTH`](crate::HEALTH).

use model::{DeviceId, Index, PciAddress, Tier, Transition, Verdict};
use serde::{Deserialize, Serialize};

/// Verdicts of all devices, and their history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthPage {
    /// Every device, sorted by id.
    pub devices: Vec<DeviceHealth>,
    /// The last changes of verdicts, the oldest first.
    pub history: Vec<Transition>,
}

/// A device with its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceHealth {
    /// Id of the device.
    pub device: DeviceId,
    /// Index in the driver's list. Not stable over reboots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<Index>,
    /// PCI address of the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci: Option<PciAddress>,
    /// State of the device, and every cause and warning.
    pub verdict: Verdict,
    /// Checks that the device does not support, and that are therefore not made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<UnsupportedChecks>,
}

/// Checks of one tier that a device does not support.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsupportedChecks {
    /// Tier of the checks.
    pub tier: Tier,
    /// Checks, named after the driver's calls.
    pub checks: Vec<String>,
}
