//! The agent's main loop: signals, config reloads, and supervision of the agent's parts.
//!
//! Each part is a task with settings of its own. A reload restarts the parts whose settings it
//! changes, and no others. A part that ends by itself is logged and started again.

mod command;
mod init;
mod offers;
mod parts;
mod probe;
mod status;
mod watch;
mod wires;

use std::{
    path::{Path, PathBuf},
    pin::pin,
    time::Duration,
};

use anyhow::{Context, bail};
use config::{Config, Overrides, Resolved, nvidia as drop_in};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};

pub(crate) use self::probe::{enabled_backends, probe_settings};
use self::{parts::RunningParts, watch::ConfigWatch};

/// Time limit for the shutdown of all parts together. The agent ends within 2 s of SIGTERM, and the
/// rest is for the log.
const FAREWELL: Duration = Duration::from_millis(1800);

/// Source of the config. It is read at the start and at each reload.
#[derive(Clone, Debug)]
pub(crate) struct ConfigSource {
    /// Dialect and path of the config file.
    pub(crate) origin: ConfigDialect,
    /// Values of flags and variables. They win over the file.
    pub(crate) overrides: Overrides,
    /// Arguments that make a probe log as the agent does.
    pub(crate) log: Vec<String>,
}

/// Dialect of the config file.
#[derive(Clone, Debug)]
pub(crate) enum ConfigDialect {
    /// Ostler's own, with the path of `ostler.yaml` if there is one.
    Native(Option<PathBuf>),
    /// NVIDIA's device plugin's: its flags, which may name a v1 config file.
    DropIn(Box<drop_in::GivenFlags>),
}

/// Signals that the agent handles. SIGHUP reloads the config, the others stop the agent: the same as
/// in NVIDIA's device plugin (cmd/nvidia-device-plugin/main.go).
#[derive(Debug)]
struct AgentSignals {
    term: Signal,
    interrupt: Signal,
    quit: Signal,
    hangup: Signal,
}

/// Runs the agent until SIGTERM, SIGINT or SIGQUIT.
///
/// # Errors
/// The first config is invalid, or a backend with `failOnInitError` did not start.
pub(crate) async fn run_agent(source: ConfigSource) -> anyhow::Result<()> {
    // Before everything else: until now, a signal ends the process without a shutdown.
    let mut signals = AgentSignals::new().context("cannot listen to signals")?;
    // The watch begins before the file is read, so that an edit in between is noticed.
    let mut watch = ConfigWatch::new(source.config_path());
    let config = source.load_config()?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        kubelet = %config.kubelet.dir.display(),
        drop_in = matches!(source.origin, ConfigDialect::DropIn(_)),
        "ostler starts"
    );
    let mut parts = RunningParts::new(config, &source);
    parts.start_all();
    let mut init = pin!(parts.init_failed());
    let failed = loop {
        tokio::select! {
            signal = signals.next_signal() => match signal {
                // NVIDIA's config-manager sends SIGHUP after it has changed its link to the config
                // file (k8s-device-plugin, cmd/config-manager/main.go).
                "SIGHUP" => parts.reload(source.load_config()),
                signal => {
                    tracing::info!(signal, "ostler stops");
                    break None;
                }
            },
            () = watch.wait_for_change() => parts.reload(source.load_config()),
            reason = &mut init => break Some(reason),
            () = parts.tend() => {}
        }
    };
    // A part that hangs must not use up the pod's grace period (terminationGracePeriodSeconds).
    if timeout(FAREWELL, parts.stop_all()).await.is_err() {
        tracing::warn!("some parts did not end in time");
    }
    match failed {
        Some(reason) => bail!("{reason}; it ends because failOnInitError is set"),
        None => Ok(()),
    }
}

// === impl ConfigSource ===

impl ConfigSource {
    /// Path of the config file, if there is one.
    fn config_path(&self) -> Option<&Path> {
        match &self.origin {
            ConfigDialect::Native(file) => file.as_deref(),
            ConfigDialect::DropIn(flags) => flags.config_file().map(Path::new),
        }
    }

    /// Reads the config, and logs its warnings.
    fn load_config(&self) -> Result<Config, config::Error> {
        let Resolved {
            config, warnings, ..
        } = self.resolve_config()?;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        Ok(config)
    }

    fn resolve_config(&self) -> Result<Resolved, config::Error> {
        let (overrides, from) = (self.overrides.clone(), &config::ValueOrigin::of_flag);
        match &self.origin {
            ConfigDialect::Native(file) => config::native(file.as_deref(), overrides, from),
            ConfigDialect::DropIn(flags) => drop_in::translate_flags(flags, overrides, from),
        }
    }
}

// === impl AgentSignals ===

impl AgentSignals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal, and returns its name. Cancel safe.
    async fn next_signal(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.quit.recv() => "SIGQUIT",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}
