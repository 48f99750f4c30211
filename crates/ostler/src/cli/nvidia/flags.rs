//! Flags for the paths of NVIDIA's driver and daemons.

use std::path::PathBuf;

use config::{BackendOverrides, NvidiaOverrides};

/// Paths of NVIDIA's driver, for commands that read the hardware.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct DriverFlags {
    /// Folder that has the driver's files, as this process sees it
    /// [default: wherever the loader finds libnvidia-ml.so.1]
    #[arg(long, env = "OSTLER_DRIVER_PATH", value_name = "DIR")]
    driver_path: Option<PathBuf>,

    /// The driver library libnvidia-ml.so.1
    #[arg(long, env = "OSTLER_NVML_LIBRARY", value_name = "FILE")]
    nvml_library: Option<PathBuf>,
}

/// Paths of NVIDIA's daemons, for the agent.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct DaemonFlags {
    /// The folder of the MPS daemons, as this process sees it; a resource that is shared through MPS
    /// waits for its daemon there [default: none, no resource waits]
    #[arg(long, env = "OSTLER_MPS_PATH", value_name = "DIR")]
    mps_path: Option<PathBuf>,
}

// === impl DriverFlags ===

impl DriverFlags {
    /// Overrides for the config.
    pub(crate) fn to_backend_overrides(&self) -> BackendOverrides {
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
    /// Adds the values to the overrides of other flags.
    pub(crate) fn add_to(self, overrides: &mut BackendOverrides) {
        overrides.nvidia.mps_path = self.mps_path;
    }
}
