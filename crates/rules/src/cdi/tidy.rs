//! The same spec, told once and in order: nothing twice, nothing in a device that all devices have.

use super::{ContainerEdits, Device, Mount, Spec};

// === impl Spec ===

impl Spec {
    /// Sorts, removes what is there twice, and takes from each device what all of them have, unless
    /// nothing were left of it: a device without edits is no device. Sets the version.
    #[must_use]
    pub fn tidy(mut self) -> Self {
        self.container_edits.tidy();
        for device in &mut self.devices {
            device.container_edits.tidy();
            device.subtract(&self.container_edits);
        }
        self.devices.sort_by(|a, b| a.name.cmp(&b.name));
        self.devices
            .dedup_by(|later, first| later.name == first.name);
        self.version().clone_into(&mut self.cdi_version);
        self
    }
}

// === impl Device ===

impl Device {
    fn subtract(&mut self, common: &ContainerEdits) {
        let mut rest = self.container_edits.clone();
        rest.env.retain(|it| !common.env.contains(it));
        rest.device_nodes
            .retain(|it| !common.device_nodes.contains(it));
        rest.hooks.retain(|it| !common.hooks.contains(it));
        rest.mounts.retain(|it| !common.mounts.contains(it));
        rest.additional_gids
            .retain(|it| !common.additional_gids.contains(it));
        if !rest.is_empty() {
            self.container_edits = rest;
        }
    }
}

// === impl ContainerEdits ===

impl ContainerEdits {
    fn tidy(&mut self) {
        self.env.sort();
        self.env.dedup();
        self.device_nodes
            .sort_by(|a, b| order(&a.path).cmp(&order(&b.path)));
        self.device_nodes
            .dedup_by(|later, first| later.path == first.path);
        let key = |mount: &Mount| {
            let path = mount.container_path.clone();
            (depth(&path), path, mount.clone())
        };
        self.mounts.sort_by_cached_key(key);
        self.mounts
            .dedup_by(|later, first| later.container_path == first.container_path);
        let mut seen = Vec::new();
        self.hooks.retain(|hook| {
            let new = !seen.contains(hook);
            if new {
                seen.push(hook.clone());
            }
            new
        });
        self.additional_gids.sort_unstable();
        self.additional_gids.dedup();
    }
}

/// Folders before what is in them, then by name.
fn order(path: &str) -> (usize, &str) {
    (depth(path), path)
}

fn depth(path: &str) -> usize {
    path.matches('/').count()
}
