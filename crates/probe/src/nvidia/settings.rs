//! Where the cards and their driver are, and what is asked of them.

use std::path::PathBuf;

use super::Discovery;
use crate::protocol::Scope;

/// Where the cards and their driver are.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder under which the host's /sys, /proc and /dev are; `/` on the host itself.
    pub host_root: PathBuf,
    /// The folder under which the driver's files are, as this process sees them.
    pub driver_path: Option<PathBuf>,
    /// Whether the loader is asked for the library where `driver_path` does not have it.
    pub loader_fallback: bool,
    /// The driver library itself; nothing else is looked for.
    pub nvml_library: Option<PathBuf>,
    /// A second folder under which device nodes are, as this process sees it.
    pub dev_path: Option<PathBuf>,
    /// The folder of the MPS daemons, as this process sees it.
    pub mps_path: Option<PathBuf>,
    /// Whether the driver's files that a container needs are looked for.
    pub driver_files: bool,
    /// The same, but not in the first report: whoever may need them later does not wait for them.
    pub driver_files_later: bool,
    /// How the cards are found.
    pub discovery: Discovery,
    /// Which cards to look at.
    pub scope: Scope,
    /// Whether samples say which processes compute on a device.
    pub processes: bool,
}

// === impl Settings ===

impl Default for Settings {
    /// The host itself, the loader's own search, all cards.
    fn default() -> Self {
        Self {
            host_root: PathBuf::from("/"),
            driver_path: None,
            loader_fallback: false,
            nvml_library: None,
            dev_path: None,
            mps_path: None,
            driver_files: false,
            driver_files_later: false,
            discovery: Discovery::Auto,
            scope: Scope::All,
            processes: false,
        }
    }
}
