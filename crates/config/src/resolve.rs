//! The config that the agent runs with.

use std::{path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{File, Health, Origins, Pools, Problem, source::Word};

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

/// Everything the agent needs to know, with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether the agent exits when the driver does not start, instead of waiting.
    pub fail_on_init_error: bool,
    /// Where the kubelet is.
    pub kubelet: Kubelet,
    /// How the hardware is looked at.
    pub probe: Probe,
    /// How verdicts are made.
    pub health: Health,
    /// What CDI specs are made of.
    pub cdi: Cdi,
    /// Whether a missing IMEX channel is an error.
    pub imex_required: bool,
    /// What is offered.
    pub pools: Pools,
    /// Where commands reach the agent.
    pub control_socket: PathBuf,
}

/// Where the kubelet is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubelet {
    /// The device plugin folder.
    pub dir: PathBuf,
    /// The pod resources socket; it need not exist.
    pub pod_resources_socket: PathBuf,
    /// Whether resources are registered.
    pub register: bool,
}

/// How the hardware is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The folder under which the host's `/sys`, `/proc` and `/dev` are.
    pub host_root: PathBuf,
    /// The folder under which the driver's files are.
    pub driver_path: Option<PathBuf>,
    /// Whether the loader is asked for the library where `driver_path` does not have it.
    pub loader_fallback: bool,
    /// The driver library itself; without it, it is looked for.
    pub nvml_library: Option<PathBuf>,
    /// A second folder under which device nodes are.
    pub dev_path: Option<PathBuf>,
    /// The folder of the MPS daemons, as the agent sees it.
    pub mps_path: Option<PathBuf>,
    /// How the cards are found.
    pub discovery: Discovery,
    /// The time between two looks.
    pub period: Duration,
    /// How long a driver call may take.
    pub call_limit: Duration,
    /// How long a call that concerns the whole driver may take.
    pub driver_call_limit: Duration,
    /// The pause before a stuck card is tried again; it doubles with each try.
    pub retry_pause: Duration,
}

/// How cards are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Discovery {
    /// As the machine is.
    Auto,
    /// Through NVML.
    Nvml,
    /// As a Tegra board.
    Tegra,
}

/// What CDI specs are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cdi {
    /// The folder of the specs, as the agent sees it.
    pub dir: PathBuf,
    /// Whether kubelet and container runtime take CDI names, for the strategy `auto`.
    pub runtime: RuntimeSupport,
    /// The folder on the host under which the driver's files are.
    pub driver_root: PathBuf,
    /// The program on the host that the hooks call.
    pub hook_path: PathBuf,
    /// Switches for how specs are made.
    pub feature_flags: Vec<String>,
    /// Hooks that are left out, or `all`.
    pub disable_hooks: Vec<String>,
}

/// Whether kubelet and container runtime take CDI names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuntimeSupport {
    /// By the runtime's own config file, where it can be read, and the kubelet's calls.
    Auto,
    /// They do.
    Supported,
    /// They do not.
    Unsupported,
}

// === impl Config ===

impl Config {
    /// The kubelet's device plugin folder.
    pub const KUBELET_DIR: &str = "/var/lib/kubelet/device-plugins";
    /// The longest path of the device plugin folder in which every socket fits.
    pub const KUBELET_DIR_LIMIT: usize = crate::file::KUBELET_DIR_LIMIT;
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
    /// Every default.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            fail_on_init_error: false,
            kubelet: Kubelet {
                dir: Self::KUBELET_DIR.into(),
                pod_resources_socket: Self::POD_RESOURCES_SOCKET.into(),
                register: true,
            },
            probe: Probe {
                host_root: "/".into(),
                driver_path: None,
                loader_fallback: false,
                nvml_library: None,
                dev_path: None,
                mps_path: None,
                discovery: Discovery::Auto,
                period: seconds(10),
                call_limit: seconds(10),
                driver_call_limit: seconds(60),
                retry_pause: seconds(5),
            },
            health: Health::default(),
            cdi: Cdi {
                dir: Self::CDI_DIR.into(),
                runtime: RuntimeSupport::Auto,
                driver_root: "/".into(),
                hook_path: Self::HOOK_PATH.into(),
                feature_flags: Vec::new(),
                disable_hooks: Vec::new(),
            },
            imex_required: false,
            pools: Pools::default(),
            control_socket: Self::CONTROL_SOCKET.into(),
        }
    }
}

// === impl Discovery ===

impl Word for Discovery {}

// === impl RuntimeSupport ===

impl Word for RuntimeSupport {}

#[cfg(test)]
mod tests;
