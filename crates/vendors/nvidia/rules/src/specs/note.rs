//! Notes on the specs for operators: things that containers will miss, and settings that have no
//! effect.

use std::path::Path;

use super::{
    SpecsInProgress,
    flag::CdiFeatureFlags,
    hook::{LDCACHE, NAMES, SYMLINKS},
    layout,
};

// === impl SpecsInProgress ===

impl SpecsInProgress<'_> {
    /// Adds the notes on all specs.
    pub(super) fn add_spec_notes(&mut self) {
        self.notes.extend(self.wish.conflicts.iter().cloned());
        for flag in CdiFeatureFlags::unknown(self.cdi) {
            self.notes
                .push(format!("the CDI feature flag `{flag}` has no effect"));
        }
        for hook in &self.cdi.disable_hooks {
            if !NAMES.contains(&hook.as_str()) {
                self.notes.push(format!(
                    "`{hook}` is no hook that could be left out; there are {}",
                    NAMES.join(", ")
                ));
            }
        }
        self.notes.extend(self.files.problems.iter().cloned());
        if self.nvidia_devices().is_empty() {
            // Without cards there may be no driver, so its files are not missing.
        } else if self.files.files.is_empty() {
            self.notes.push(format!(
                "no file of the driver was found: containers get device nodes, and no library; let \
                 the agent see the driver's files (backends.nvidia.driverPath), which are under {} on the host",
                self.cdi.driver_root.display()
            ));
        } else if !self.hooks.possible() {
            self.notes.push(self.missed());
        }
    }

    /// Describes what containers miss without a program for hooks.
    fn missed(&self) -> String {
        let folders: Vec<&str> = layout::loader_folders(&self.contents).into_iter().collect();
        let root = &self.cdi.driver_root;
        let place = match root == Path::new("/") {
            true => "on the host".to_owned(),
            false => format!("under {}", root.display()),
        };
        let paths = match self.files.drm.is_empty() {
            true => String::new(),
            false => format!("/dev/dri/by-path is not there ({SYMLINKS}), "),
        };
        let more = match self.files.platform.is_usual() {
            true => format!(
                ", a newer CUDA in the image cannot replace the driver's (enable-cuda-compat), \
                 {paths}and the driver may make device nodes (disable-device-node-modification)"
            ),
            false => String::new(),
        };
        format!(
            "neither nvidia-ctk nor nvidia-cdi-hook was found {place}, so the specs have no hooks. \
             Containers have the libraries under all of their names, but: their loader is not told \
             of {} ({LDCACHE}){more}. Install nvidia-container-toolkit on the host, or set \
             backends.nvidia.cdi.hookPath",
            folders.join(", ")
        )
    }
}
