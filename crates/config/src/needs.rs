//! Conditions that must hold before units are handed out.

use std::path::PathBuf;

use crate::Config;

/// Conditions that must hold before units are handed out. Until they do, the units are listed and Unhealthy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The folder of the MPS daemons, as the agent sees it. Where it is known, a resource that is
    /// shared through MPS waits for its daemon.
    pub mps_path: Option<PathBuf>,
    /// Requires the IMEX channels of a pool to be there.
    pub imex: bool,
}

// === impl Needs ===

impl Needs {
    /// Takes the conditions from a config.
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            mps_path: config.backends.nvidia.probe.mps_path.clone(),
            imex: config.imex_required,
        }
    }
}
