//! Files of a card with graphics: the DRM folders and device nodes of the kernel.

use super::HostTree;
use crate::state::{Gpu, GpuModel};

/// First NVML architecture number whose data centre cards support graphics: Turing.
const FIRST: u32 = 6;

/// Minor numbers of the first DRM nodes. `card0` is the display of the board's management
/// controller.
const CARD: u32 = 1;
const RENDER: u32 = 128;

/// True if cards of a model support graphics. Models with MIG are for computing only.
fn can_draw(model: &GpuModel) -> bool {
    model.architecture >= FIRST && model.mig.is_empty()
}

/// Adds the DRM files of a card whose folder below `/sys` is `at`.
pub(super) fn add_drm(tree: &mut HostTree, gpu: &Gpu, model: &GpuModel, at: &str) {
    if !can_draw(model) {
        return;
    }
    let kinds = [("card", CARD, "card"), ("renderD", RENDER, "render")];
    for (prefix, first, kind) in kinds {
        let number = gpu.minor.saturating_add(first);
        let name = format!("{prefix}{number}");
        tree.add_file(format!("{at}/drm/{name}/dev"), format!("226:{number}\n"));
        tree.add_relative_link(format!("sys/class/drm/{name}"), format!("{at}/drm/{name}"));
        tree.add_file(format!("dev/dri/{name}"), "");
        let by_path = format!("dev/dri/by-path/pci-{}-{kind}", gpu.pci);
        tree.said_link(by_path, &format!("../{name}"));
    }
}
