//! The page [`HEALTH`](crate::HEALTH).

use model::{DeviceId, Index, PciAddress, Tier, Transition, Verdict};
use serde::{Deserialize, Serialize};

/// The page [`HEALTH`](crate::HEALTH).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Every device, sorted by id.
    pub devices: Vec<Judged>,
    /// The last changes of verdicts, the oldest first.
    pub history: Vec<Transition>,
}

/// A device and what is held of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// Its id.
    pub device: DeviceId,
    /// The driver's index; not stable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<Index>,
    /// The address of its card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci: Option<PciAddress>,
    /// Its state and every cause.
    pub verdict: Verdict,
    /// Checks that it does not support: nobody makes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<Unsupported>,
}

/// Checks of one tier that a device does not support.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsupported {
    /// The tier.
    pub tier: Tier,
    /// The checks, by the names of the driver's calls.
    pub checks: Vec<String>,
}
