//! Section `backends`: settings of each vendor's probe and rules for its devices. One file for each
//! vendor.

#[cfg(feature = "acme")]
mod acme;
mod exec;
mod nvidia;
mod startup;

use std::collections::BTreeMap;

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

#[cfg(feature = "acme")]
pub use self::acme::{AcmeBackend, AcmeHalves};
pub(crate) use self::nvidia::{MPS_CLIENT_LIMIT, check_annotation_prefix, relative};
pub use self::{
    exec::ExecBackend,
    nvidia::{
        Discovery, Mig, NvidiaBackend, NvidiaCdi, NvidiaHandover, NvidiaOverrides, NvidiaProbe,
        XidBase, XidSet, Xids,
    },
    startup::Startup,
};
use crate::{
    Pool,
    source::{Section, SectionReader},
};

/// Settings of each vendor's probe, and rules for its devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Backends {
    /// Settings of NVIDIA's probe, and rules for NVIDIA's devices.
    pub nvidia: NvidiaBackend,
    /// Rules for the cards of a made-up vendor.
    #[cfg(feature = "acme")]
    pub acme: AcmeBackend,
    /// Backends whose probe is a program of the user's, by name.
    #[serde(flatten)]
    pub programs: BTreeMap<String, ExecBackend>,
}

/// Values of flags and variables for each vendor's driver, which win over the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendOverrides {
    /// Values for NVIDIA's driver.
    pub nvidia: NvidiaOverrides,
}

// === impl Backends ===

impl Section for Backends {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_section("nvidia", &mut self.nvidia);
        #[cfg(feature = "acme")]
        at.set_section("acme", &mut self.acme);
        self.programs = at.take_named_sections(exec::check_name);
    }
}

impl Backends {
    /// Name of NVIDIA's backend.
    pub const NVIDIA: &str = "nvidia";

    /// Returns the start settings of each backend, with the name of the backend.
    pub fn startups(&self) -> impl Iterator<Item = (&str, &Startup)> {
        let programs = self.programs.iter();
        let programs = programs.map(|(name, backend)| (name.as_str(), &backend.startup));
        [(Self::NVIDIA, &self.nvidia.startup)]
            .into_iter()
            .chain(programs)
    }

    /// Returns the pools of a node whose config has none: the default pools of each vendor.
    pub fn default_pools(&self) -> Vec<Pool> {
        self.nvidia.nvidia_pools()
    }
}

// === impl BackendOverrides ===

impl BackendOverrides {
    /// Sets every value in the config, and calls `said` with its key, its flag and the value.
    pub(crate) fn apply_to_backends(
        self,
        backends: &mut Backends,
        said: &mut impl FnMut(&str, &str, &Path),
    ) {
        self.nvidia.apply_to_nvidia(&mut backends.nvidia, said);
    }
}

/// Checks a pool by the rules of each vendor.
pub(crate) fn check_pool(pool: &Pool, at: &mut SectionReader<'_>) {
    nvidia::check_mps(pool, at);
}
