//! Main loop of a probe process: a backend's facts as lines of the protocol.
//!
//! Two plain threads call the driver: the survey and the events. The main thread makes no driver
//! call, so its beats continue while another thread hangs, and name the call.

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
    backend::{EventSource, ProbeBackend, WatchError},
    configure::{ConfigureError, read_settings},
};
use self::{
    output::LineOutput,
    work::{DriverThreads, SurveyOrder},
};
use crate::{
    CallTable, OverdueCall,
    protocol::{self, Beat, Command, Configure, Hello, Message},
};

/// Time between two beats.
const BEAT: Duration = Duration::from_secs(2);

/// Time for which the driver threads may close their handles when the process ends.
const FAREWELL: Duration = Duration::from_millis(1500);

/// Time for which a probe whose input ended waits for the end of the running survey.
const LAST_LOOK: Duration = Duration::from_secs(10);

/// Time between two reads of all links.
// NVML has no event for a link that comes up late or goes down.
const LINKS: Duration = Duration::from_secs(5 * 60);

/// Number of lines that may wait to be written. Above it the driver threads block.
const BACKLOG: usize = 64;

/// Settings of a probe process.
#[derive(Clone, Debug)]
pub struct ProbeSettings {
    /// Settings of the protocol: cards, periods and options.
    pub configure: Configure,
    /// Time between two reads of all links, if links are read.
    pub links_period: Duration,
    /// True if the agent runs the probe. The probe then dies with the agent, ignores signals, and
    /// exits when its input ends.
    pub supervised: bool,
    /// Version of the probe, for the message `hello`.
    pub version: String,
}

/// Error of the start of a probe process.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A step of the setup failed.
    #[error("cannot {attempt}")]
    Setup {
        /// Step that failed.
        attempt: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Commands from the standard input. The sender keeps the channel open on a terminal, which gives
/// no commands.
struct CommandInput {
    receiver: mpsc::Receiver<Command>,
    never_ends: Option<mpsc::Sender<Command>>,
}

/// Reason why the main loop ended.
enum LoopEnd {
    /// A command says so, or the output is closed.
    Told,
    /// The input ended: a person or a script asks for one survey.
    NoInput,
    /// A driver thread ended by itself, such as by a panic.
    Broken,
}

// === impl ProbeSettings ===

impl Default for ProbeSettings {
    /// Settings for a person at a terminal: a survey every ten seconds, with events, links and
    /// checks.
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

/// Runs a probe on this process's standard streams until a command stops it, its input ends or its
/// output is closed. `calls` is the table in which the backend records its driver calls.
///
/// The caller should return from `main` soon afterwards: a driver thread that hangs may still run.
///
/// # Errors
/// The process cannot be set up. Errors of the driver are reported to the agent and end nothing.
pub fn run_probe(
    settings: &ProbeSettings,
    backend: impl ProbeBackend,
    calls: Arc<CallTable>,
) -> Result<(), Error> {
    if settings.supervised {
        // A probe that outlives the agent would keep driver handles open. If the agent died before
        // this call, the probe exits at the end of its input.
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
    settings: &ProbeSettings,
    backend: impl ProbeBackend,
    calls: &Arc<CallTable>,
) -> Result<(), Error> {
    let _ignored = ignore_signals(settings).map_err(Error::setup("ignore signals"))?;
    let mut output = LineOutput::open_output(settings.supervised)
        .map_err(Error::setup("open a descriptor for the lines"))?;
    let hello = Message::Hello(Hello {
        protocol: protocol::VERSION,
        probe: backend.backend_name().to_owned(),
        version: settings.version.clone(),
    });
    if output.write_message(&hello).is_err() {
        return Ok(());
    }
    let (lines, mut messages) = mpsc::channel(BACKLOG);
    let work = DriverThreads::start_threads(settings, backend, lines, calls)
        .map_err(Error::setup("start a thread"))?;
    let commands = commands(settings).map_err(Error::setup("read the standard input"))?;
    match serve(&mut output, &mut messages, commands, &work, calls).await {
        LoopEnd::Told => {}
        LoopEnd::NoInput if settings.supervised => {}
        LoopEnd::NoInput => last_look(&mut output, &mut messages, &work).await,
        LoopEnd::Broken => tracing::error!("a driver thread ended by itself: the probe ends too"),
    }
    // Unblocks threads that wait to write: nothing reads their lines from now on.
    drop(messages);
    work.wait_stopped(Instant::now() + FAREWELL).await;
    Ok(())
}

/// Forwards lines and commands, and sends a beat every two seconds.
async fn serve(
    output: &mut LineOutput,
    messages: &mut mpsc::Receiver<Message>,
    mut commands: CommandInput,
    work: &DriverThreads,
    calls: &CallTable,
) -> LoopEnd {
    let mut beats = interval(BEAT);
    // Not `Burst`: after a suspend of the machine one beat is enough.
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            message = messages.recv() => match message {
                Some(message) => message,
                None => return LoopEnd::Broken,
            },
            _ = beats.tick() => {
                if work.is_broken() {
                    return LoopEnd::Broken;
                }
                Message::Beat(build_beat(calls))
            },
            command = commands.receiver.recv() => match command {
                Some(Command::Refresh) => {
                    work.send_order(SurveyOrder::Refresh);
                    continue;
                }
                // The settings of a probe never change: the agent starts another process for other
                // settings.
                Some(Command::Configure(_)) => continue,
                Some(Command::Stop) => return LoopEnd::Told,
                None => return LoopEnd::NoInput,
            },
        };
        if output.write_message(&message).is_err() {
            return LoopEnd::Told;
        }
    }
}

/// Waits for the end of the running survey, and forwards its lines.
async fn last_look(
    output: &mut LineOutput,
    messages: &mut mpsc::Receiver<Message>,
    work: &DriverThreads,
) {
    work.request_stop();
    let deadline = Instant::now() + LAST_LOOK;
    while let Ok(Some(message)) = timeout_at(deadline, messages.recv()).await {
        if output.write_message(&message).is_err() {
            return;
        }
    }
}

fn build_beat(calls: &CallTable) -> Beat {
    let stuck = |call: OverdueCall| StuckCall {
        call: call.call.into_owned(),
        device: call.device,
        since: Timestamp::try_from(call.since).unwrap_or(Timestamp::UNIX_EPOCH),
        // A call for one card concerns that card, also if the event thread makes it.
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

/// Ignores the signals that end a process, if the agent runs the probe. A person's Ctrl-C ends a
/// probe on a terminal.
// The agent decides when a probe ends. systemd stops a unit by SIGTERM to all of its processes
// (KillMode=control-group): a probe that died of it would look like a crash.
fn ignore_signals(settings: &ProbeSettings) -> io::Result<Vec<Signal>> {
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

/// Opens the commands on the standard input. A terminal gives none, and its input never ends.
fn commands(settings: &ProbeSettings) -> io::Result<CommandInput> {
    let (sender, receiver) = mpsc::channel(4);
    let mut commands = CommandInput {
        receiver,
        never_ends: None,
    };
    if !settings.supervised && io::stdin().is_terminal() {
        commands.never_ends = Some(sender);
    } else {
        input::start_reader(sender)?;
    }
    Ok(commands)
}

/// Parses the commands in an input. Only for the fuzz targets.
#[doc(hidden)]
pub fn read_commands(input: &[u8]) -> Vec<Command> {
    let mut commands = Vec::new();
    let read = input::read_each_command(input, |command| {
        commands.push(command);
        true
    });
    debug_assert!(read.is_ok(), "a slice does not break");
    commands
}

/// Describes an error and its causes in one line.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
