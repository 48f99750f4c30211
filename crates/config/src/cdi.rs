//! Section `cdi`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Config,
    source::{Section, SectionReader, Word},
};

/// Settings of CDI specs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Cdi {
    /// Folder of the specs, as the agent sees it.
    pub dir: PathBuf,
    /// Support for CDI names in kubelet and container runtime, for the strategy `auto`.
    pub runtime: RuntimeSupport,
}

/// Support for CDI names in kubelet and container runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuntimeSupport {
    /// Detected from the runtime's own config and from files that only newer kubelets write, where
    /// they can be read.
    Auto,
    /// Both support CDI names.
    Supported,
    /// CDI names are not supported.
    Unsupported,
}

// === impl Cdi ===

impl Section for Cdi {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("dir", &mut self.dir);
        at.set_option("runtime", &mut self.runtime);
    }
}

impl Default for Cdi {
    fn default() -> Self {
        Self {
            dir: Config::CDI_DIR.into(),
            runtime: RuntimeSupport::Auto,
        }
    }
}

// === impl RuntimeSupport ===

impl Word for RuntimeSupport {}
