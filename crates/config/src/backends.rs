//! The section `backends`: settings of each vendor's probe. Paths are as the agent sees them.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::{At, Section, Word};

/// Settings of each vendor's probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Backends {
    /// NVIDIA's cards.
    pub nvidia: NvidiaBackend,
}

/// Settings of the probe of NVIDIA's cards. Paths are as the agent sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NvidiaBackend {
    /// The folder under which the driver's files are.
    pub driver_path: Option<PathBuf>,
    /// Asks the loader for the library where `driverPath` does not have it.
    pub loader_fallback: bool,
    /// The driver library itself; without it, it is looked for.
    pub nvml_library: Option<PathBuf>,
    /// A second folder under which device nodes are.
    pub dev_path: Option<PathBuf>,
    /// The folder of the MPS daemons.
    pub mps_path: Option<PathBuf>,
    /// The way in which cards are found.
    pub discovery: Discovery,
}

/// The way in which cards are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Discovery {
    /// As the machine is.
    Auto,
    /// Through NVML.
    Nvml,
    /// As a Tegra board.
    Tegra,
}

// === impl Backends ===

impl Section for Backends {
    fn read(&mut self, at: &mut At<'_>) {
        at.section("nvidia", &mut self.nvidia);
    }
}

// === impl NvidiaBackend ===

impl Section for NvidiaBackend {
    fn read(&mut self, at: &mut At<'_>) {
        at.set("driverPath", &mut self.driver_path);
        at.set("loaderFallback", &mut self.loader_fallback);
        at.set("nvmlLibrary", &mut self.nvml_library);
        at.set("devPath", &mut self.dev_path);
        at.set("mpsPath", &mut self.mps_path);
        at.set("discovery", &mut self.discovery);
    }
}

impl Default for NvidiaBackend {
    fn default() -> Self {
        Self {
            driver_path: None,
            loader_fallback: false,
            nvml_library: None,
            dev_path: None,
            mps_path: None,
            discovery: Discovery::Auto,
        }
    }
}

// === impl Discovery ===

impl Word for Discovery {}
