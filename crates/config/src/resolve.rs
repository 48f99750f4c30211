//! The config that the agent runs with.

use std::path::PathBuf;

use serde::Serialize;

use crate::{Backends, Cdi, File, Health, Kubelet, Origins, Pools, Probe, Problem};

mod layers;

pub use self::layers::native;

/// What flags and variables say. Everything may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The device plugin folder.
    pub kubelet_dir: Option<PathBuf>,
    /// The pod resources socket.
    pub pod_resources_socket: Option<PathBuf>,
    /// The folder under which the host's `/sys`, `/proc` and `/dev` are.
    pub host_root: Option<PathBuf>,
    /// The folder under which the driver's files are.
    pub driver_path: Option<PathBuf>,
    /// The driver library itself.
    pub nvml_library: Option<PathBuf>,
    /// The folder of the MPS daemons, as the agent sees it.
    pub mps_path: Option<PathBuf>,
    /// Where commands reach the agent.
    pub control_socket: Option<PathBuf>,
    /// The folder of the CDI specs.
    pub cdi_dir: Option<PathBuf>,
}

/// A config, where each of its values came from, and what is probably not meant so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The config.
    pub config: Config,
    /// Where its values came from.
    pub origins: Origins,
    /// What is probably not meant so.
    pub warnings: Vec<Problem>,
}

/// Everything the agent needs to know, with every default filled in, in the shape of `ostler.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Exits when the driver does not start, instead of waiting.
    pub fail_on_init_error: bool,
    /// The folder under which the host's `/sys`, `/proc` and `/dev` are.
    pub host_root: PathBuf,
    /// The socket on which commands reach the agent.
    pub control_socket: PathBuf,
    /// Paths of the kubelet.
    pub kubelet: Kubelet,
    /// Times of every probe.
    pub probe: Probe,
    /// Settings of each vendor's probe.
    pub backends: Backends,
    /// Rules by which verdicts are made.
    pub health: Health,
    /// Settings of CDI specs.
    pub cdi: Cdi,
    /// Makes a missing IMEX channel an error.
    pub imex_required: bool,
    /// The devices that are offered, and how.
    #[serde(flatten)]
    pub pools: Pools,
}

// === impl Config ===

impl Config {
    /// The kubelet's device plugin folder.
    pub const KUBELET_DIR: &str = "/var/lib/kubelet/device-plugins";
    /// The longest path of the device plugin folder in which every socket fits.
    pub const KUBELET_DIR_LIMIT: usize = Kubelet::DIR_LIMIT;
    /// Where the kubelet serves the pod resources API.
    pub const POD_RESOURCES_SOCKET: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";
    /// Where commands reach the agent.
    pub const CONTROL_SOCKET: &str = "/run/ostler/control.sock";
    /// The folder of CDI specs that are made at run time.
    pub const CDI_DIR: &str = "/var/run/cdi";
    /// What the hooks of CDI specs call.
    pub const HOOK_PATH: &str = "/usr/bin/nvidia-ctk";

    /// Lays flags and variables over the file, and the file over the defaults.
    pub fn resolve(overrides: Overrides, file: File) -> Self {
        Resolved::new(overrides, file, &crate::Origin::flag).config
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            fail_on_init_error: false,
            host_root: "/".into(),
            control_socket: Self::CONTROL_SOCKET.into(),
            kubelet: Kubelet::default(),
            probe: Probe::default(),
            backends: Backends::default(),
            health: Health::default(),
            cdi: Cdi::default(),
            imex_required: false,
            pools: Pools::default(),
        }
    }
}

#[cfg(test)]
mod tests;
