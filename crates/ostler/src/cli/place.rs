//! Flags for the paths of the host and its drivers, shared by the commands that read the hardware.

use std::path::PathBuf;

use clap::Args;
use config::Overrides;

use super::DriverFlags;

/// Paths of the host and its drivers.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct HostFlags {
    /// Folder that has the host's /sys, /proc and /dev [default: /]
    #[arg(long, env = "OSTLER_HOST_ROOT", value_name = "DIR")]
    host_root: Option<PathBuf>,

    #[command(flatten)]
    driver: DriverFlags,
}

// === impl HostFlags ===

impl HostFlags {
    /// Overrides for the config.
    pub(super) fn to_overrides(&self) -> Overrides {
        Overrides {
            host_root: self.host_root.clone(),
            backends: self.driver.to_backend_overrides(),
            ..Overrides::default()
        }
    }
}
