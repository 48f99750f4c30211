//! `ostler run`.

use std::{path::PathBuf, process::ExitCode};

use config::Overrides;

use super::{DaemonFlags, place::Place};
use crate::run::{Origin, Source};

/// Run the agent: find the devices, register with the kubelet, answer for them until SIGTERM.
///
/// The agent never exits because of its surroundings: without a driver, a device or a kubelet it
/// waits, and says why. SIGHUP reads the config again; a wrong one leaves the last good one at
/// work. Flags win over variables, variables over the config file.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The config file
    #[arg(long, env = "OSTLER_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    /// The kubelet's device plugin folder: kubelet.sock, and our sockets
    /// [default: /var/lib/kubelet/device-plugins]
    #[arg(long, env = "OSTLER_KUBELET_DIR", value_name = "DIR")]
    kubelet_dir: Option<PathBuf>,

    /// The kubelet's pod resources socket; it need not exist
    /// [default: /var/lib/kubelet/pod-resources/kubelet.sock]
    #[arg(long, env = "OSTLER_POD_RESOURCES_SOCKET", value_name = "FILE")]
    pod_resources_socket: Option<PathBuf>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    daemons: DaemonFlags,

    /// Where commands such as `ostler devices` reach the agent; for root alone
    /// [default: /run/ostler/control.sock]
    #[arg(long, env = "OSTLER_CONTROL_SOCKET", value_name = "FILE")]
    control_socket: Option<PathBuf>,

    /// The folder for CDI specs, as this process sees it
    /// [default: /var/run/cdi]
    #[arg(long, env = "OSTLER_CDI_DIR", value_name = "DIR")]
    cdi_dir: Option<PathBuf>,
}

// === impl Args ===

impl Args {
    /// Runs the agent; its probes log as `log` says.
    pub(super) fn start(self, log: Vec<String>) -> anyhow::Result<ExitCode> {
        let (file, overrides) = self.split();
        let source = Source {
            origin: Origin::Native(file),
            log,
            overrides,
        };
        super::block_on(crate::run::run(source))??;
        Ok(ExitCode::SUCCESS)
    }

    /// The config file, and what flags and variables say beside it.
    pub(super) fn split(self) -> (Option<PathBuf>, Overrides) {
        let mut overrides = Overrides {
            kubelet_dir: self.kubelet_dir,
            pod_resources_socket: self.pod_resources_socket,
            control_socket: self.control_socket,
            cdi_dir: self.cdi_dir,
            ..self.place.overrides()
        };
        self.daemons.add_to(&mut overrides.backends);
        (self.config, overrides)
    }
}
