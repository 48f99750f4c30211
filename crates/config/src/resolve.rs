//! The config that the agent runs with.

use std::{path::PathBuf, time::Duration};

use crate::{File, Period};

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
    /// Where commands reach the agent.
    pub control_socket: Option<PathBuf>,
}

/// Everything the agent needs to know, with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where the kubelet is.
    pub kubelet: Kubelet,
    /// How the hardware is looked at.
    pub probe: Probe,
    /// How verdicts are made.
    pub health: Health,
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
}

/// How the hardware is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The folder under which the host's `/sys`, `/proc` and `/dev` are.
    pub host_root: PathBuf,
    /// The folder under which the driver's files are.
    pub driver_path: Option<PathBuf>,
    /// The driver library itself; without it, it is looked for.
    pub nvml_library: Option<PathBuf>,
    /// The time between two looks.
    pub period: Duration,
    /// How long a driver call may take.
    pub call_limit: Duration,
    /// How long a call that concerns the whole driver may take.
    pub driver_call_limit: Duration,
    /// The pause before a stuck card is tried again; it doubles with each try.
    pub retry_pause: Duration,
}

/// How verdicts are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// How long a card that does not answer is Unknown before it is Unhealthy.
    pub unanswered_grace: Duration,
    /// How long a card that is gone stays listed as Unhealthy.
    pub gone_grace: Duration,
}

// === impl Config ===

impl Config {
    /// The defaults for every value.
    pub const KUBELET_DIR: &str = "/var/lib/kubelet/device-plugins";
    /// Where the kubelet serves the pod resources API.
    pub const POD_RESOURCES_SOCKET: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";
    /// Where commands reach the agent.
    pub const CONTROL_SOCKET: &str = "/run/ostler/control.sock";

    /// Lays flags and variables over the file, and the file over the defaults.
    pub fn resolve(overrides: Overrides, file: File) -> Self {
        let path = |flag: Option<PathBuf>, file: Option<PathBuf>, default: &str| {
            flag.or(file).unwrap_or_else(|| default.into())
        };
        let seconds = |period: Option<Period>, default| {
            period.map_or(Duration::from_secs(default), Period::get)
        };
        Self {
            kubelet: Kubelet {
                dir: path(overrides.kubelet_dir, file.kubelet.dir, Self::KUBELET_DIR),
                pod_resources_socket: path(
                    overrides.pod_resources_socket,
                    file.kubelet.pod_resources_socket,
                    Self::POD_RESOURCES_SOCKET,
                ),
            },
            probe: Probe {
                host_root: path(overrides.host_root, file.host_root, "/"),
                driver_path: overrides.driver_path.or(file.driver_path),
                nvml_library: overrides.nvml_library.or(file.nvml_library),
                period: seconds(file.probe.period, 10),
                call_limit: seconds(file.probe.call_limit, 10),
                driver_call_limit: seconds(file.probe.driver_call_limit, 60),
                retry_pause: seconds(file.probe.retry_pause, 5),
            },
            health: Health {
                unanswered_grace: seconds(file.health.unanswered_grace, 30),
                gone_grace: seconds(file.health.gone_grace, 300),
            },
            control_socket: path(
                overrides.control_socket,
                file.control_socket,
                Self::CONTROL_SOCKET,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_said_is_all_defaults() {
        insta::assert_debug_snapshot!(Config::resolve(Overrides::default(), File::default()));
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let file = crate::parse("hostRoot: /file\ndriverPath: /file\n").unwrap();
        let overrides = Overrides {
            host_root: Some("/flag".into()),
            ..Overrides::default()
        };
        let config = Config::resolve(overrides, file);
        assert_eq!(config.probe.host_root, PathBuf::from("/flag"));
        assert_eq!(config.probe.driver_path, Some("/file".into()));
        assert_eq!(config.control_socket, PathBuf::from(Config::CONTROL_SOCKET));
    }
}
