//! Values of flags and variables for NVIDIA's driver.

use std::path::{Path, PathBuf};

use super::NvidiaBackend;
use crate::resolve::set_override;

/// Values of flags and variables for NVIDIA's driver, which win over the file. `None` leaves the
/// value of the file. Paths are as the agent sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NvidiaOverrides {
    /// Folder under which the driver's files are.
    pub driver_path: Option<PathBuf>,
    /// Driver library itself.
    pub nvml_library: Option<PathBuf>,
    /// Folder of the MPS daemons.
    pub mps_path: Option<PathBuf>,
}

// === impl NvidiaOverrides ===

impl NvidiaOverrides {
    /// Sets every value in the config, and calls `said` with its key, its flag and the value.
    pub(crate) fn apply_to_nvidia(
        self,
        nvidia: &mut NvidiaBackend,
        said: &mut impl FnMut(&str, &str, &Path),
    ) {
        let probe = &mut nvidia.probe;
        let names = ("backends.nvidia.driverPath", "driver-path");
        set_override(names, self.driver_path, &mut probe.driver_path, said);
        let names = ("backends.nvidia.nvmlLibrary", "nvml-library");
        set_override(names, self.nvml_library, &mut probe.nvml_library, said);
        let names = ("backends.nvidia.mpsPath", "mps-path");
        set_override(names, self.mps_path, &mut probe.mps_path, said);
    }
}
