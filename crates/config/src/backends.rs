//! The section `backends`: settings of each vendor's probe and rules for its devices, a file for each
//! vendor.

mod nvidia;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::nvidia::{
    Discovery, NvidiaBackend, NvidiaHandover, NvidiaProbe, XidBase, XidSet, Xids,
};
pub(crate) use self::nvidia::{prefix, relative};
use crate::source::{At, Section};

/// Settings of each vendor's probe, and rules for its devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Backends {
    /// NVIDIA's cards.
    pub nvidia: NvidiaBackend,
}

// === impl Backends ===

impl Section for Backends {
    fn read(&mut self, at: &mut At<'_>) {
        at.section("nvidia", &mut self.nvidia);
    }
}
