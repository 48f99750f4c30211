//! Defaults of a profile's keys.

use sim_node::state::{DriverVersions, NodePlatform, NumaNode};

pub(super) fn description() -> String {
    "a node of a profile without a description".to_owned()
}

pub(super) fn driver() -> DriverVersions {
    DriverVersions {
        version: "580.95.05".to_owned(),
        nvml: "13.580.95.05".to_owned(),
        cuda: 13000,
    }
}

pub(super) fn numa() -> Vec<NumaNode> {
    vec![NumaNode {
        node: 0,
        cpus: "0-15".to_owned(),
        memory_gib: 64,
    }]
}

pub(super) fn under() -> String {
    "pci0000:00".to_owned()
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(super) fn is_bare_metal(platform: &NodePlatform) -> bool {
    *platform == NodePlatform::BareMetal
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(super) fn is_zero(number: &u32) -> bool {
    *number == 0
}
