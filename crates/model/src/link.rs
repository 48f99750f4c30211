//! How two devices reach each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::DeviceId;

/// What connects a device with one peer. Missing facts are `None`, never a guess.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The other end.
    pub peer: DeviceId,
    /// The closest point they share on the way through the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ancestor: Option<Ancestor>,
    /// Direct lanes between the two (NVLink), zero if there are none.
    #[serde(default)]
    pub lanes: u32,
    /// Whether both hang on one switched fabric (NVSwitch) on which all pairs are equal.
    #[serde(default)]
    pub fabric: bool,
}

/// The closest common point of two devices, nearest first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Ancestor {
    /// The same board.
    Board,
    /// One PCIe switch.
    Switch,
    /// Several PCIe switches.
    Switches,
    /// One PCIe host bridge.
    HostBridge,
    /// One NUMA node.
    Node,
    /// Nothing closer than the machine.
    System,
}
