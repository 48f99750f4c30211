//! The same spec, told once and in order: nothing twice, nothing in a device that all devices have.

use rules::{ContainerEdits, Mount};

use super::Spec;

// === impl Spec ===

impl Spec {
    /// Sorts, removes what is there twice, and takes from each device what all of them have, unless
    /// nothing were left of it: a device without edits is no device. Sets the version.
    #[must_use]
    pub(crate) fn tidy(mut self) -> Self {
        tidy_edits(&mut self.container_edits);
        for device in &mut self.devices {
            tidy_edits(&mut device.container_edits);
            subtract(&mut device.container_edits, &self.container_edits);
        }
        self.devices.sort_by(|a, b| a.name.cmp(&b.name));
        self.devices
            .dedup_by(|later, first| later.name == first.name);
        self.version().clone_into(&mut self.cdi_version);
        self
    }
}

/// Takes from edits what is common, unless nothing were left of them.
fn subtract(edits: &mut ContainerEdits, common: &ContainerEdits) {
    let mut rest = edits.clone();
    rest.env
        .retain(|name, value| common.env.get(name) != Some(value));
    rest.device_nodes
        .retain(|it| !common.device_nodes.contains(it));
    rest.hooks.retain(|it| !common.hooks.contains(it));
    rest.mounts.retain(|it| !common.mounts.contains(it));
    rest.groups.retain(|it| !common.groups.contains(it));
    if !rest.is_empty() {
        *edits = rest;
    }
}

/// Sorts edits and removes what is there twice.
fn tidy_edits(edits: &mut ContainerEdits) {
    edits
        .device_nodes
        .sort_by(|a, b| order(&a.path).cmp(&order(&b.path)));
    edits
        .device_nodes
        .dedup_by(|later, first| later.path == first.path);
    let key = |mount: &Mount| {
        let path = mount.container_path.clone();
        (depth(&path), path, mount.clone())
    };
    edits.mounts.sort_by_cached_key(key);
    edits
        .mounts
        .dedup_by(|later, first| later.container_path == first.container_path);
    let mut seen = Vec::new();
    edits.hooks.retain(|hook| {
        let new = !seen.contains(hook);
        if new {
            seen.push(hook.clone());
        }
        new
    });
    edits.groups.sort_unstable();
    edits.groups.dedup();
}

/// Folders before what is in them, then by name.
fn order(path: &str) -> (usize, &str) {
    (depth(path), path)
}

fn depth(path: &str) -> usize {
    path.matches('/').count()
}
