//! The section `backends`: settings of each vendor's probe and rules for its devices, a file for each
//! vendor.

#[cfg(feature = "acme")]
mod acme;
mod nvidia;

use schemars::JsonSchema;
use serde::Serialize;

#[cfg(feature = "acme")]
pub use self::acme::{AcmeBackend, AcmeHalves};
pub use self::nvidia::{
    Discovery, Mig, NvidiaBackend, NvidiaCdi, NvidiaHandover, NvidiaOverrides, NvidiaProbe,
    XidBase, XidSet, Xids,
};
pub(crate) use self::nvidia::{MPS_CLIENT_LIMIT, prefix, relative};
use crate::{
    Pool,
    source::{At, Section},
};

/// Settings of each vendor's probe, and rules for its devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Backends {
    /// NVIDIA's cards.
    pub nvidia: NvidiaBackend,
    /// The cards of a made-up vendor.
    #[cfg(feature = "acme")]
    pub acme: AcmeBackend,
}

// === impl Backends ===

impl Section for Backends {
    fn read(&mut self, at: &mut At<'_>) {
        at.section("nvidia", &mut self.nvidia);
        #[cfg(feature = "acme")]
        at.section("acme", &mut self.acme);
    }
}

impl Backends {
    /// The pools of a node whose config names none: those of each vendor.
    pub fn pools(&self) -> Vec<Pool> {
        self.nvidia.pools()
    }
}

/// Checks a pool by the rules of each vendor.
pub(crate) fn check_pool(pool: &Pool, at: &mut At<'_>) {
    nvidia::check_mps(pool, at);
}
