//! `ostler run`.

use std::{path::PathBuf, process::ExitCode};

use config::Overrides;

use super::{DaemonFlags, place::HostFlags};
use crate::run::{ConfigDialect, ConfigSource};

/// Run the agent: find devices, register with the kubelet, and serve it until SIGTERM.
///
/// Without a driver, a device or a kubelet the agent waits and logs the reason; it exits only if
/// failOnInitError is set. SIGHUP reloads the config; an invalid one is reported, and the last
/// good one stays in use. Flags win over variables, variables over the config file.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct RunArgs {
    /// The config file
    #[arg(long, env = "OSTLER_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    /// The kubelet's device plugin folder, with kubelet.sock and the agent's sockets
    /// [default: /var/lib/kubelet/device-plugins]
    #[arg(long, env = "OSTLER_KUBELET_DIR", value_name = "DIR")]
    kubelet_dir: Option<PathBuf>,

    /// The kubelet's pod resources socket; it may be absent
    /// [default: /var/lib/kubelet/pod-resources/kubelet.sock]
    #[arg(long, env = "OSTLER_POD_RESOURCES_SOCKET", value_name = "FILE")]
    pod_resources_socket: Option<PathBuf>,

    #[command(flatten)]
    place: HostFlags,

    #[command(flatten)]
    daemons: DaemonFlags,

    /// The socket for commands such as `ostler devices`; only root can use it
    /// [default: /run/ostler/control.sock]
    #[arg(long, env = "OSTLER_CONTROL_SOCKET", value_name = "FILE")]
    control_socket: Option<PathBuf>,

    /// The folder for CDI specs, as this process sees it
    /// [default: /var/run/cdi]
    #[arg(long, env = "OSTLER_CDI_DIR", value_name = "DIR")]
    cdi_dir: Option<PathBuf>,
}

// === impl RunArgs ===

impl RunArgs {
    /// Runs the agent. `log` has the arguments for the log of its probes.
    pub(super) fn start_agent(self, log: Vec<String>) -> anyhow::Result<ExitCode> {
        let (file, overrides) = self.split_flags();
        let source = ConfigSource {
            origin: ConfigDialect::Native(file),
            log,
            overrides,
        };
        super::block_on(crate::run::run_agent(source))??;
        Ok(ExitCode::SUCCESS)
    }

    /// Splits the flags into the path of the config file and the overrides of its values.
    pub(super) fn split_flags(self) -> (Option<PathBuf>, Overrides) {
        let mut overrides = Overrides {
            kubelet_dir: self.kubelet_dir,
            pod_resources_socket: self.pod_resources_socket,
            control_socket: self.control_socket,
            cdi_dir: self.cdi_dir,
            ..self.place.to_overrides()
        };
        self.daemons.add_to(&mut overrides.backends);
        (self.config, overrides)
    }
}
