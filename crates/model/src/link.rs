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
    /// True if both hang on one switch, or on a net of them, on which all pairs are equal (NVSwitch). The alias
    /// is the name that agents before this one wrote into their state files.
    #[serde(default, alias = "fabric")]
    pub switched: bool,
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
