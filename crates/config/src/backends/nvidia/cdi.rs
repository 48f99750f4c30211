//! Section `backends.nvidia.cdi`: contents of the CDI specs of NVIDIA's devices.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    schema::OneOrMany,
    source::{Section, SectionReader},
};

/// Contents of the CDI specs of NVIDIA's devices. Paths are those on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NvidiaCdi {
    /// Folder on the host under which the driver's files are.
    pub driver_root: PathBuf,
    /// Program on the host that the hooks call.
    pub hook_path: PathBuf,
    /// Switches for the contents of the specs.
    #[schemars(with = "OneOrMany<String>")]
    pub feature_flags: Vec<String>,
    /// Names of hooks that are left out, or `all`.
    #[schemars(with = "OneOrMany<String>")]
    pub disable_hooks: Vec<String>,
}

// === impl NvidiaCdi ===

impl Section for NvidiaCdi {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("driverRoot", &mut self.driver_root);
        at.set_option("hookPath", &mut self.hook_path);
        at.set_option("featureFlags", &mut self.feature_flags);
        at.set_option("disableHooks", &mut self.disable_hooks);
    }
}

impl NvidiaCdi {
    /// Program on the host that the hooks of CDI specs call by default.
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
