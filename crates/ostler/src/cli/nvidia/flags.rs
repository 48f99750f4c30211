//! Flags of commands that set what NVIDIA's driver and daemons need.

use std::path::PathBuf;

use config::{BackendOverrides, NvidiaOverrides};

/// Places of NVIDIA's driver, for the commands that look at the hardware.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct DriverFlags {
    /// The folder under which the driver's files are, as this process sees them
    /// [default: wherever the loader finds libnvidia-ml.so.1]
    #[arg(long, env = "OSTLER_DRIVER_PATH", value_name = "DIR")]
    driver_path: Option<PathBuf>,

    /// The driver library itself
    #[arg(long, env = "OSTLER_NVML_LIBRARY", value_name = "FILE")]
    nvml_library: Option<PathBuf>,
}

/// Places of NVIDIA's daemons, for the agent.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct DaemonFlags {
    /// The folder of the MPS daemons, as this process sees it; what is shared through MPS waits for
    /// its daemon there [default: none, nothing waits]
    #[arg(long, env = "OSTLER_MPS_PATH", value_name = "DIR")]
    mps_path: Option<PathBuf>,
}

// === impl DriverFlags ===

impl DriverFlags {
    /// The values for the config.
    pub(crate) fn overrides(&self) -> BackendOverrides {
        let nvidia = NvidiaOverrides {
            driver_path: self.driver_path.clone(),
            nvml_library: self.nvml_library.clone(),
            mps_path: None,
        };
        BackendOverrides { nvidia }
    }
}

// === impl DaemonFlags ===

impl DaemonFlags {
    /// Puts the values beside those of other flags.
    pub(crate) fn add_to(self, overrides: &mut BackendOverrides) {
        overrides.nvidia.mps_path = self.mps_path;
    }
}
