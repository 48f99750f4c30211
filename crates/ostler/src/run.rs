//! The agent: which parts there are, how they are wired, and who notices when one ends.
//!
//! Each part is a task with a config of its own. A part whose config changed at a reload is
//! ended and started anew, the others are not touched. A part that ends by itself is started
//! again; nothing dies unseen.

mod parts;
mod probe;
mod status;

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use config::{Config, File, Overrides};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};

use self::parts::Parts;
pub(crate) use self::probe::own_probe;

/// How long all parts together may take to end.
const FAREWELL: Duration = Duration::from_millis(1800);

/// Where the config comes from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The config file, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// What flags and variables say.
    pub(crate) overrides: Overrides,
    /// The arguments that make a probe log as the agent does.
    pub(crate) log: Vec<String>,
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
    let config = source.load()?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        kubelet = %config.kubelet.dir.display(),
        "ostler starts"
    );
    let mut parts = Parts::new(config, &source);
    parts.start_all();
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                "SIGHUP" => parts.reload(source.load()),
                signal => {
                    tracing::info!(signal, "ostler stops");
                    break;
                }
            },
            () = parts.tend() => {}
        }
    }
    if timeout(FAREWELL, parts.stop()).await.is_err() {
        tracing::warn!("some parts did not end in time");
    }
    Ok(())
}

// === impl Source ===

impl Source {
    /// Reads the file and lays the overrides over it.
    fn load(&self) -> Result<Config, config::Error> {
        let file = match &self.file {
            Some(path) => config::load(path)?,
            None => File::default(),
        };
        Ok(Config::resolve(self.overrides.clone(), file))
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
