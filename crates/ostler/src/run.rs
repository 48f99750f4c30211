//! The agent: which parts there are, how they are wired, and who notices when one ends.
//!
//! Each part is a task with a config of its own. A part whose config changed at a reload is
//! ended and started anew, the others are not touched. A part that ends by itself is started
//! again; nothing dies unseen.

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

pub(crate) use self::probe::{backends, probe_settings};
use self::{parts::Parts, watch::Watch};

/// How long all parts together may take to end.
const FAREWELL: Duration = Duration::from_millis(1800);

/// Where the config comes from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Who says what.
    pub(crate) origin: Origin,
    /// What flags and variables say.
    pub(crate) overrides: Overrides,
    /// The arguments that make a probe log as the agent does.
    pub(crate) log: Vec<String>,
}

/// In whose words the config is.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// In ours: the file, if there is one.
    Native(Option<PathBuf>),
    /// In those of NVIDIA's device plugin: its flags, which may name a file.
    DropIn(Box<drop_in::Flags>),
}

/// The signals the agent listens to.
#[derive(Debug)]
struct Signals {
    term: Signal,
    interrupt: Signal,
    quit: Signal,
    hangup: Signal,
}

/// Runs the agent until it is told to stop.
pub(crate) async fn run(source: Source) -> anyhow::Result<()> {
    let mut signals = Signals::new().context("cannot listen to signals")?;
    // Before the file is read: what changes meanwhile is a change.
    let mut watch = Watch::new(source.file());
    let config = source.load()?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        kubelet = %config.kubelet.dir.display(),
        drop_in = matches!(source.origin, Origin::DropIn(_)),
        "ostler starts"
    );
    let mut parts = Parts::new(config, &source);
    parts.start_all();
    let mut init = pin!(parts.init_failed());
    let failed = loop {
        tokio::select! {
            signal = signals.next() => match signal {
                "SIGHUP" => parts.reload(source.load()),
                signal => {
                    tracing::info!(signal, "ostler stops");
                    break None;
                }
            },
            () = watch.changed() => parts.reload(source.load()),
            reason = &mut init => break Some(reason),
            () = parts.tend() => {}
        }
    };
    if timeout(FAREWELL, parts.stop()).await.is_err() {
        tracing::warn!("some parts did not end in time");
    }
    match failed {
        Some(reason) => bail!("{reason}; it ends because failOnInitError is set"),
        None => Ok(()),
    }
}

// === impl Source ===

impl Source {
    /// The config file, if there is one.
    fn file(&self) -> Option<&Path> {
        match &self.origin {
            Origin::Native(file) => file.as_deref(),
            Origin::DropIn(flags) => flags.config_file().map(Path::new),
        }
    }

    /// Reads everything, and tells what is probably not meant so.
    fn load(&self) -> Result<Config, config::Error> {
        let Resolved {
            config, warnings, ..
        } = self.resolve()?;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        Ok(config)
    }

    fn resolve(&self) -> Result<Resolved, config::Error> {
        let (overrides, from) = (self.overrides.clone(), &config::Origin::flag);
        match &self.origin {
            Origin::Native(file) => config::native(file.as_deref(), overrides, from),
            Origin::DropIn(flags) => drop_in::config(flags, overrides, from),
        }
    }
}

// === impl Signals ===

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.quit.recv() => "SIGQUIT",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}
