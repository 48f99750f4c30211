//! Flags of `ostler cdi generate` for paths on the host in NVIDIA's specs.

use std::path::{Path, PathBuf};

use config::{Backends, Config, Handover, NvidiaCdi};

/// Paths on the host for NVIDIA's specs.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SpecFlags {
    /// Folder on the host that has the driver's files [default: /]
    #[arg(long, value_name = "DIR")]
    driver_root: Option<PathBuf>,

    /// Folder on the host that has the device nodes [default: /]
    #[arg(long, value_name = "DIR")]
    dev_root: Option<PathBuf>,

    /// The program on the host that hooks call
    /// [default: nvidia-ctk or nvidia-cdi-hook, where found]
    #[arg(long, value_name = "FILE")]
    hook_path: Option<PathBuf>,
}

// === impl SpecFlags ===

impl SpecFlags {
    /// Overrides the backend's settings with the flags.
    pub(crate) fn set_backends(&self, settings: &mut Backends) {
        let cdi = &mut settings.nvidia.cdi;
        if let Some(root) = &self.driver_root {
            cdi.driver_root.clone_from(root);
        }
        if let Some(path) = &self.hook_path {
            cdi.hook_path.clone_from(path);
        }
    }

    /// Overrides the handover settings with the flags.
    pub(crate) fn set_handover(&self, handover: &mut Handover) {
        if let Some(root) = &self.dev_root {
            handover.nvidia.dev_root.clone_from(root);
        }
    }

    /// Returns a warning if the program for hooks was named and is missing under the host root.
    pub(crate) fn missing_hook(&self, config: &Config) -> Option<String> {
        let path = self.hook_path.as_ref();
        let path = path.unwrap_or(&config.backends.nvidia.cdi.hook_path);
        let is_usual = path == Path::new(NvidiaCdi::HOOK_PATH) || path == Path::new("");
        let root = &config.host_root;
        let missing = !is_usual && !host::HostRoot::new(root).has_path(path);
        missing.then(|| {
            format!(
                "{}, which hooks are to call, is not to be seen under {}: if the host does not have \
                 it, no container starts with these specs",
                path.display(),
                root.display()
            )
        })
    }
}
