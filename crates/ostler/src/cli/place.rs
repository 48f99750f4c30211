//! The options that say where the host and its driver are, shared by the commands that look.

use std::path::PathBuf;

use clap::Args;
use config::{NvidiaOverrides, Overrides};

/// Where the host and its driver are.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Place {
    /// The folder under which the host's /sys, /proc and /dev are [default: /]
    #[arg(long, env = "OSTLER_HOST_ROOT", value_name = "DIR")]
    pub(super) host_root: Option<PathBuf>,

    /// The folder under which the driver's files are, as this process sees them
    /// [default: wherever the loader finds libnvidia-ml.so.1]
    #[arg(long, env = "OSTLER_DRIVER_PATH", value_name = "DIR")]
    pub(super) driver_path: Option<PathBuf>,

    /// The driver library itself
    #[arg(long, env = "OSTLER_NVML_LIBRARY", value_name = "FILE")]
    pub(super) nvml_library: Option<PathBuf>,
}

// === impl Place ===

impl Place {
    /// What it says, for the config.
    pub(super) fn overrides(&self) -> Overrides {
        Overrides {
            host_root: self.host_root.clone(),
            nvidia: NvidiaOverrides {
                driver_path: self.driver_path.clone(),
                nvml_library: self.nvml_library.clone(),
                ..NvidiaOverrides::default()
            },
            ..Overrides::default()
        }
    }
}
