//! The section `backends.nvidia.cdi`: the contents of the CDI specs of NVIDIA's devices.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    schema::OneOrMany,
    source::{At, Section},
};

/// Settings for the contents of the CDI specs of NVIDIA's devices. Paths are the host's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NvidiaCdi {
    /// The folder on the host under which the driver's files are.
    pub driver_root: PathBuf,
    /// The program on the host that the hooks call.
    pub hook_path: PathBuf,
    /// Switches for how specs are made.
    #[schemars(with = "OneOrMany<String>")]
    pub feature_flags: Vec<String>,
    /// Hooks that are left out, or `all`.
    #[schemars(with = "OneOrMany<String>")]
    pub disable_hooks: Vec<String>,
}

// === impl NvidiaCdi ===

impl Section for NvidiaCdi {
    fn read(&mut self, at: &mut At<'_>) {
        at.set("driverRoot", &mut self.driver_root);
        at.set("hookPath", &mut self.hook_path);
        at.set("featureFlags", &mut self.feature_flags);
        at.set("disableHooks", &mut self.disable_hooks);
    }
}

impl NvidiaCdi {
    /// The program that the hooks of CDI specs call.
    pub const HOOK_PATH: &str = "/usr/bin/nvidia-ctk";
}

impl Default for NvidiaCdi {
    fn default() -> Self {
        Self {
            driver_root: "/".into(),
            hook_path: Self::HOOK_PATH.into(),
            feature_flags: Vec::new(),
            disable_hooks: Vec::new(),
        }
    }
}
