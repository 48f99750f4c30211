//! The section `cdi`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Config,
    schema::OneOrMany,
    source::{At, Section, Word},
};

/// Settings of CDI specs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Cdi {
    /// The folder of the specs, as the agent sees it.
    pub dir: PathBuf,
    /// Support of CDI names by kubelet and container runtime, for the strategy `auto`.
    pub runtime: RuntimeSupport,
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

/// Support of CDI names by kubelet and container runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuntimeSupport {
    /// By the runtime's own config file, where it can be read, and the kubelet's calls.
    Auto,
    /// They do.
    Supported,
    /// They do not.
    Unsupported,
}

// === impl Cdi ===

impl Section for Cdi {
    fn read(&mut self, at: &mut At<'_>) {
        at.set("dir", &mut self.dir);
        at.set("runtime", &mut self.runtime);
        at.set("driverRoot", &mut self.driver_root);
        at.set("hookPath", &mut self.hook_path);
        at.set("featureFlags", &mut self.feature_flags);
        at.set("disableHooks", &mut self.disable_hooks);
    }
}

impl Default for Cdi {
    fn default() -> Self {
        Self {
            dir: Config::CDI_DIR.into(),
            runtime: RuntimeSupport::Auto,
            driver_root: "/".into(),
            hook_path: Config::HOOK_PATH.into(),
            feature_flags: Vec::new(),
            disable_hooks: Vec::new(),
        }
    }
}

// === impl RuntimeSupport ===

impl Word for RuntimeSupport {}
