//! Files by which programs detect the platform.

use super::HostTree;
use crate::state::{NodePlatform, NodeState, Tegra};

/// Device nodes of a Tegra system that containers get.
pub(super) const TEGRA_NODES: [&str; 5] = [
    "nvhost-as-gpu",
    "nvhost-ctrl",
    "nvhost-ctrl-gpu",
    "nvhost-gpu",
    "nvmap",
];

/// Adds the files of the platform.
pub(super) fn add_platform(tree: &mut HostTree, state: &NodeState) {
    let product = &state.machine.product;
    match state.machine.platform {
        NodePlatform::BareMetal | NodePlatform::Vgpu => {
            if !product.is_empty() {
                tree.add_file("sys/class/dmi/id/product_name", format!("{product}\n"));
            }
        }
        NodePlatform::Wsl => tree.add_file("dev/dxg", ""),
        NodePlatform::Tegra => {
            add_tegra(tree, state.machine.tegra.as_ref());
            if !product.is_empty() {
                // Same form as in the device tree: a final NUL and no newline.
                tree.add_file("proc/device-tree/model", format!("{product}\0"));
            }
        }
    }
}

fn add_tegra(tree: &mut HostTree, software: Option<&Tegra>) {
    let (release, revision) = software.map_or((35, "4.1"), |s| (s.release, &s.revision));
    let text = format!(
        "# R{release} (release), REVISION: {revision}, GCID: 0, BOARD: generic, EABI: aarch64, \
         DATE: Tue Aug  1 00:00:00 UTC 2023\n"
    );
    tree.add_file("etc/nv_tegra_release", text);
    tree.add_file("sys/devices/soc0/family", "Tegra\n");
    tree.add_file("sys/devices/soc0/soc_id", "35\n");
    for node in TEGRA_NODES {
        tree.add_file(format!("dev/{node}"), "");
    }
}
