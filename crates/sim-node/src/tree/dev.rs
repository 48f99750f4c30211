//! `/dev`: the driver's device nodes, as plain files.

use super::Tree;
use crate::{
    mig::{COMPUTE_INSTANCES, GPU_INSTANCES},
    state::State,
};

/// The nodes that all cards share.
const SHARED: [&str; 4] = [
    "nvidiactl",
    "nvidia-uvm",
    "nvidia-uvm-tools",
    "nvidia-modeset",
];

/// Adds everything below `/dev`.
pub(super) fn add(tree: &mut Tree, state: &State) {
    if !state.machine.platform.has_bus() {
        return;
    }
    for name in SHARED {
        tree.file(format!("dev/{name}"), "");
    }
    let mut rights = vec![1, 2];
    for gpu in &state.gpus {
        tree.file(format!("dev/nvidia{}", gpu.minor), "");
        let alone = gpu.instances.iter();
        rights.extend(alone.map(|instance| right(gpu.minor, instance.id, None)));
        for mig in &gpu.migs {
            rights.push(right(gpu.minor, mig.gi, None));
            rights.push(right(gpu.minor, mig.gi, Some(mig.ci)));
        }
    }
    if state.models.values().any(|model| !model.mig.is_empty()) {
        for right in rights {
            tree.file(format!("dev/nvidia-caps/nvidia-cap{right}"), "");
        }
    }
}

/// The number of the right to use a GPU instance, or a compute instance in it. The driver counts
/// through all that could exist: one for the instance, then its compute instances.
pub(super) fn right(minor: u32, gi: u32, ci: Option<u32>) -> u32 {
    let instance = minor.saturating_mul(GPU_INSTANCES).saturating_add(gi);
    let first = instance
        .saturating_mul(1 + COMPUTE_INSTANCES)
        .saturating_add(3);
    first.saturating_add(ci.map_or(0, |ci| ci.saturating_add(1)))
}
