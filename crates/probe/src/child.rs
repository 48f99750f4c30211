//! The probe process: a backend's facts as lines on standard output.
//!
//! Driver calls are made on two plain threads, the survey and the events; the main thread makes
//! none, so that its beats go on and name the call in which another thread hangs.

mod backend;
mod clocks;
mod configure;
mod input;
mod listen;
mod output;
mod work;

use std::{
    error::Error as StdError,
    io::{self, IsTerminal},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use model::StuckCall;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval, timeout_at},
};

pub use self::{
    backend::{Backend, Events, WatchError},
    configure::{ConfigureError, read_settings},
};
use self::{
    output::Output,
    work::{Order, Work},
};
use crate::{
    Calls, Overdue,
    protocol::{self, Beat, Command, Configure, Hello, Message},
};

/// Time between two signs of life.
const BEAT: Duration = Duration::from_secs(2);

/// How long the driver threads get to close their handles at the end.
const FAREWELL: Duration = Duration::from_millis(1500);

/// How long a probe whose input ended waits for the look that is under way.
const LAST_LOOK: Duration = Duration::from_secs(10);

/// How often all links are asked for again: one that is trained late, or lost, is no event.
const LINKS: Duration = Duration::from_secs(5 * 60);

/// Lines that may wait to be written; the driver threads wait when there are more.
const BACKLOG: usize = 64;

/// How a probe process behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Cards to look at, and how often to do what.
    pub configure: Configure,
    /// Time between two questions for all links, where links are asked for.
    pub links_period: Duration,
    /// Set where the agent runs the probe: it dies with the agent, and the end of its input is its end.
    pub supervised: bool,
    /// The probe's own version, for its first line.
    pub version: String,
}

/// Why a probe process cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process could not be set up.
    #[error("cannot {attempt}")]
    Setup {
        /// What was tried.
        attempt: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

/// The commands, and a sender that keeps them open where no input can end.
struct Commands {
    receiver: mpsc::Receiver<Command>,
    never_ends: Option<mpsc::Sender<Command>>,
}

/// Why the main loop ended.
enum End {
    /// It was told to stop, or there is nobody to talk to.
    Told,
    /// There is no more input: somebody asked for one look.
    NoInput,
    /// A driver thread is gone; it says so itself.
    Broken,
}

// === impl Settings ===

impl Default for Settings {
    /// A survey every ten seconds, with events, links and checks, for a person.
    fn default() -> Self {
        Self {
            configure: Configure::default(),
            links_period: LINKS,
            supervised: false,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

// === impl Error ===

impl Error {
    fn setup(attempt: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Setup { attempt, source }
    }
}

/// Runs a probe on this process's standard streams until it is told to stop, its input ends or its
/// output breaks. `calls` is the table in which the backend's driver calls are written down.
///
/// The caller should leave `main` soon afterwards: a driver thread that hangs is not waited for.
///
/// # Errors
/// The process could not be set up. What happens to the driver is no error: it is reported.
pub fn run(settings: &Settings, backend: impl Backend, calls: Arc<Calls>) -> Result<(), Error> {
    if settings.supervised {
        let signal = Some(rustix::process::Signal::KILL);
        rustix::process::set_parent_process_death_signal(signal)
            .map_err(io::Error::from)
            .map_err(Error::setup("ask for the parent's death signal"))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::setup("start the runtime"))?;
    let done = runtime.block_on(converse(settings, backend, &calls));
    runtime.shutdown_background();
    done
}

async fn converse(
    settings: &Settings,
    backend: impl Backend,
    calls: &Arc<Calls>,
) -> Result<(), Error> {
    let _ignored = ignore_signals(settings).map_err(Error::setup("ignore signals"))?;
    let mut output = Output::open(settings.supervised)
        .map_err(Error::setup("open a descriptor for the lines"))?;
    let hello = Message::Hello(Hello {
        protocol: protocol::VERSION,
        probe: backend.name().to_owned(),
        version: settings.version.clone(),
    });
    if output.write(&hello).is_err() {
        return Ok(());
    }
    let (lines, mut messages) = mpsc::channel(BACKLOG);
    let work =
        Work::start(settings, backend, lines, calls).map_err(Error::setup("start a thread"))?;
    let commands = commands(settings).map_err(Error::setup("read the standard input"))?;
    match serve(&mut output, &mut messages, commands, &work, calls).await {
        End::Told => {}
        End::NoInput if settings.supervised => {}
        End::NoInput => last_look(&mut output, &mut messages, &work).await,
        End::Broken => tracing::error!("a driver thread ended by itself: the probe ends too"),
    }
    // The threads may be waiting to write: nobody reads any more.
    drop(messages);
    work.finish(Instant::now() + FAREWELL).await;
    Ok(())
}

/// Passes lines and commands on, and beats.
async fn serve(
    output: &mut Output,
    messages: &mut mpsc::Receiver<Message>,
    mut commands: Commands,
    work: &Work,
    calls: &Calls,
) -> End {
    let mut beats = interval(BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            message = messages.recv() => match message {
                Some(message) => message,
                None => return End::Broken,
            },
            _ = beats.tick() => {
                if work.is_broken() {
                    return End::Broken;
                }
                Message::Beat(beat(calls))
            },
            command = commands.receiver.recv() => match command {
                Some(Command::Refresh) => {
                    work.order(Order::Refresh);
                    continue;
                }
                // Settings are for the whole life of a probe: the agent starts another for others.
                Some(Command::Configure(_)) => continue,
                Some(Command::Stop) => return End::Told,
                None => return End::NoInput,
            },
        };
        if output.write(&message).is_err() {
            return End::Told;
        }
    }
}

/// Lets the look that is under way come to its end, and passes it on.
async fn last_look(output: &mut Output, messages: &mut mpsc::Receiver<Message>, work: &Work) {
    work.stop();
    let deadline = Instant::now() + LAST_LOOK;
    while let Ok(Some(message)) = timeout_at(deadline, messages.recv()).await {
        if output.write(&message).is_err() {
            return;
        }
    }
}

fn beat(calls: &Calls) -> Beat {
    let stuck = |call: Overdue| StuckCall {
        call: call.call.into_owned(),
        device: call.device,
        since: Timestamp::try_from(call.since).unwrap_or(Timestamp::UNIX_EPOCH),
        // A call for one card is held against that card, also where it is made to hear its events.
        work: match (call.work, call.device) {
            (model::Work::Events, Some(_)) => model::Work::Survey,
            (work, _) => work,
        },
    };
    Beat {
        calls: calls.overdue().into_iter().map(stuck).collect(),
        made: calls.made(),
    }
}

/// The agent decides when a probe ends: a signal to its whole process group does not. A person's
/// Ctrl-C ends one that a person runs.
fn ignore_signals(settings: &Settings) -> io::Result<Vec<Signal>> {
    if !settings.supervised {
        return Ok(Vec::new());
    }
    [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ]
    .into_iter()
    .map(signal)
    .collect()
}

/// The commands on the standard input. A terminal gives none and never ends.
fn commands(settings: &Settings) -> io::Result<Commands> {
    let (sender, receiver) = mpsc::channel(4);
    let mut commands = Commands {
        receiver,
        never_ends: None,
    };
    if !settings.supervised && io::stdin().is_terminal() {
        commands.never_ends = Some(sender);
    } else {
        input::start(sender)?;
    }
    Ok(commands)
}

/// The commands in an input: a door for the fuzz targets, and for nothing else.
#[doc(hidden)]
pub fn read_commands(input: &[u8]) -> Vec<Command> {
    let mut commands = Vec::new();
    let read = input::read(input, |command| {
        commands.push(command);
        true
    });
    debug_assert!(read.is_ok(), "a slice does not break");
    commands
}

/// A short line for an error and what caused it.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
