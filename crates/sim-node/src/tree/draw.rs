//! What a card that can draw has besides: the kernel's folders and nodes for graphics.

use super::Tree;
use crate::state::{Gpu, Model};

/// The first architecture, as NVML numbers them, whose cards for data centres draw: Turing.
const FIRST: u32 = 6;

/// The numbers of the first nodes. The first of all belongs to the board's own small screen.
const CARD: u32 = 1;
const RENDER: u32 = 128;

/// Whether cards of a model draw. Those that can be partitioned are for computing.
fn draws(model: &Model) -> bool {
    model.architecture >= FIRST && model.mig.is_empty()
}

/// Adds what a card at that place below `/sys` has.
pub(super) fn add(tree: &mut Tree, gpu: &Gpu, model: &Model, at: &str) {
    if !draws(model) {
        return;
    }
    let kinds = [("card", CARD, "card"), ("renderD", RENDER, "render")];
    for (prefix, first, kind) in kinds {
        let number = gpu.minor.saturating_add(first);
        let name = format!("{prefix}{number}");
        tree.file(format!("{at}/drm/{name}/dev"), format!("226:{number}\n"));
        tree.link(format!("sys/class/drm/{name}"), format!("{at}/drm/{name}"));
        tree.file(format!("dev/dri/{name}"), "");
        let by_path = format!("dev/dri/by-path/pci-{}-{kind}", gpu.pci);
        tree.said_link(by_path, &format!("../{name}"));
    }
}
