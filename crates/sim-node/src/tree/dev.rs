//! `/dev`: device nodes of the driver, as plain files.

use super::HostTree;
use crate::{
    mig::{COMPUTE_INSTANCES, GPU_INSTANCES},
    state::NodeState,
};

/// Device nodes that all cards share.
const SHARED: [&str; 4] = [
    "nvidiactl",
    "nvidia-uvm",
    "nvidia-uvm-tools",
    "nvidia-modeset",
];

/// Adds the files below `/dev`.
pub(super) fn add_dev(tree: &mut HostTree, state: &NodeState) {
    if !state.machine.platform.has_bus() {
        return;
    }
    for name in SHARED {
        tree.add_file(format!("dev/{name}"), "");
    }
    // Capabilities 1 and 2 are `config` and `monitor`; those of instances begin at 3.
    let mut rights = vec![1, 2];
    for gpu in &state.gpus {
        tree.add_file(format!("dev/nvidia{}", gpu.minor), "");
        let alone = gpu.instances.iter();
        rights.extend(alone.map(|instance| right(gpu.minor, instance.id, None)));
        for mig in &gpu.migs {
            rights.push(right(gpu.minor, mig.gi, None));
            rights.push(right(gpu.minor, mig.gi, Some(mig.ci)));
        }
    }
    if state.models.values().any(|model| !model.mig.is_empty()) {
        for right in rights {
            tree.add_file(format!("dev/nvidia-caps/nvidia-cap{right}"), "");
        }
    }
}

/// Minor number of the capability for a GPU instance, or for a compute instance in it. The driver
/// numbers all capabilities that could exist: one for each GPU instance, then those of its compute
/// instances.
pub(super) fn right(minor: u32, gi: u32, ci: Option<u32>) -> u32 {
    let instance = minor.saturating_mul(GPU_INSTANCES).saturating_add(gi);
    let first = instance
        .saturating_mul(1 + COMPUTE_INSTANCES)
        .saturating_add(3);
    first.saturating_add(ci.map_or(0, |ci| ci.saturating_add(1)))
}
