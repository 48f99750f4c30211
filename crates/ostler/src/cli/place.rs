//! The options that say where the host and its drivers are, shared by the commands that look.

use std::path::PathBuf;

use clap::Args;
use config::Overrides;

use super::DriverFlags;

/// Where the host and its drivers are.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Place {
    /// The folder under which the host's /sys, /proc and /dev are [default: /]
    #[arg(long, env = "OSTLER_HOST_ROOT", value_name = "DIR")]
    host_root: Option<PathBuf>,

    #[command(flatten)]
    driver: DriverFlags,
}

// === impl Place ===

impl Place {
    /// What it says, for the config.
    pub(super) fn overrides(&self) -> Overrides {
        Overrides {
            host_root: self.host_root.clone(),
            backends: self.driver.overrides(),
            ..Overrides::default()
        }
    }
}
