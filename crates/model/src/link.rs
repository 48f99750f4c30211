//! Links: connections between two devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::DeviceId;

/// Connection of a device to one peer. An unknown fact is `None` and never guessed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Device at the other end.
    pub peer: DeviceId,
    /// Closest common point on the way through the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ancestor: Option<Ancestor>,
    /// Number of direct lanes between the two (NVLink); 0 if there are none.
    #[serde(default)]
    pub lanes: u32,
    /// True if both are on one switch, or on connected switches, on which all pairs are equal
    /// (NVSwitch). The alias is the name in the state files of earlier agents.
    #[serde(default, alias = "fabric")]
    pub switched: bool,
}

/// Closest common point of two devices, the nearest first.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_link_that_was_kept_under_an_older_name_is_still_read() {
        let read = |name: &str| -> Link {
            serde_json::from_value(json!({"peer": "GPU-1", "lanes": 0, name: true})).unwrap()
        };
        assert!(read("fabric").switched);
        assert_eq!(read("fabric"), read("switched"));
        assert_eq!(
            serde_json::to_value(read("fabric")).unwrap()["switched"],
            true
        );
    }
}
