//! Normal form of a spec: sorted, without duplicates, and without edits in a device that all devices
//! have.

use rules::{ContainerEdits, Mount};

use super::CdiSpec;

// === impl CdiSpec ===

impl CdiSpec {
    /// Sorts the spec, removes duplicates and removes from each device the common edits. Sets the version.
    #[must_use]
    pub(crate) fn into_normal_form(mut self) -> Self {
        // The order must not depend on the order of the probe's report: an equal spec is not written
        // again, and a runtime does not reload it.
        tidy_edits(&mut self.container_edits);
        for device in &mut self.devices {
            tidy_edits(&mut device.container_edits);
            subtract(&mut device.container_edits, &self.container_edits);
        }
        self.devices.sort_by(|a, b| a.name.cmp(&b.name));
        self.devices
            .dedup_by(|later, first| later.name == first.name);
        self.minimum_version().clone_into(&mut self.cdi_version);
        self
    }
}

/// Removes the common edits from those of a device, unless that would remove all of them.
fn subtract(edits: &mut ContainerEdits, common: &ContainerEdits) {
    let mut rest = edits.clone();
    rest.env
        .retain(|name, value| common.env.get(name) != Some(value));
    rest.device_nodes
        .retain(|it| !common.device_nodes.contains(it));
    rest.hooks.retain(|it| !common.hooks.contains(it));
    rest.mounts.retain(|it| !common.mounts.contains(it));
    rest.groups.retain(|it| !common.groups.contains(it));
    // CDI rejects a device without edits, so one keeps duplicates rather than none.
    if !rest.is_empty() {
        *edits = rest;
    }
}

/// Sorts edits and removes duplicates.
fn tidy_edits(edits: &mut ContainerEdits) {
    edits
        .device_nodes
        .sort_by(|a, b| path_order(&a.path).cmp(&path_order(&b.path)));
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
    // Hooks keep their order: runtimes run them one after the other.
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

/// Sort key of a path: folders come before their contents, then by name. A mount must not hide one
/// below it.
fn path_order(path: &str) -> (usize, &str) {
    (depth(path), path)
}

fn depth(path: &str) -> usize {
    path.matches('/').count()
}
