//! One probe process: how it is started, how its lines reach the supervisor, how it is let go.

use std::{
    io::{self, PipeReader, Write as _},
    os::fd::OwnedFd,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use futures_util::FutureExt;
use model::CardRef;
use rustix::{
    io::ioctl_fionbio,
    process::{Pid, Signal, kill_process_group},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::unix::pipe,
    process::{Child, ChildStdout, Command},
    sync::mpsc,
    task::JoinSet,
    time::{Instant, timeout},
};

use super::{Children, Settings};
use crate::protocol::{self, CONFIGURE_LIMIT, Configure, LINE_LIMIT, Message};

/// The length of a line up to which its memory is kept for the next one.
const USUAL_LINE: usize = 64 << 10;

/// What a process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Looks at everything that is not stuck.
    Main,
    /// Tries one stuck card alone.
    Solo(CardRef),
}

/// Numbers the processes of one supervisor.
pub(super) type Number = u64;

/// Something heard from a process.
#[derive(Debug)]
pub(super) enum Heard {
    /// A message.
    Message(Box<Message>),
    /// A line that is no message.
    Nonsense(protocol::Error),
    /// Its output ended: it exited, closed it, or wrote a line without end.
    End(String),
}

/// A running probe process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) role: Role,
    pub(super) heard: Instant,
    number: Number,
    children: Children,
    child: Child,
    stdin: Option<pipe::Sender>,
}

/// A process that is gone for good.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) number: Number,
    pub(super) pid: Option<u32>,
    pub(super) status: Option<ExitStatus>,
}

/// A process that is to be started.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    pub(super) settings: &'a Settings,
    pub(super) number: Number,
    pub(super) role: Role,
    /// Settings of this process.
    pub(super) configure: &'a Configure,
}

/// How to start a probe: a program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// The arguments.
    pub args: Vec<String>,
}

// === impl Process ===

impl Process {
    /// Starts a probe and forwards what it says to `heard`, on a task in `readers`.
    ///
    /// # Errors
    /// The program cannot be started, or its settings are longer than its input takes at once; then
    /// nothing is started.
    pub(super) fn start(
        launch: &Launch<'_>,
        readers: &mut JoinSet<()>,
        heard: mpsc::Sender<(Number, Heard)>,
    ) -> io::Result<Self> {
        let Launch {
            settings,
            number,
            role,
            configure,
        } = *launch;
        let (stdin, input) = filled_input(configure)?;
        let mut child = Command::new(&settings.program.path)
            // Never a drop-in name: others look for processes by it, to send them signals.
            .arg0("ostler-probe")
            .args(&settings.program.args)
            // Signals to the agent's group are for the agent; it ends its probes itself.
            .process_group(0)
            .stdin(Stdio::from(input))
            .stdout(Stdio::piped())
            .spawn()?;
        let pid = child.id();
        if let Some(pid) = pid {
            settings.children.add(pid);
        }
        if let Some(stdout) = child.stdout.take() {
            readers.spawn(read(number, stdout, heard));
        }
        Ok(Self {
            role,
            heard: Instant::now(),
            number,
            children: settings.children.clone(),
            child,
            stdin: Some(stdin),
        })
    }

    /// Its process id while it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Sends it a command; `false` where its input does not take one at once.
    pub(super) fn tell(&mut self, command: &protocol::Command) -> bool {
        let line = command.line();
        let Some(stdin) = &mut self.stdin else {
            return false;
        };
        // A line is shorter than a pipe's unit: it is written whole or not at all.
        let written = stdin.write_all(line.as_bytes()).now_or_never();
        matches!(written, Some(Ok(())))
    }

    /// Kills it and does not wait: it may sit in the kernel, deaf to signals. The task in `leaving`
    /// ends when it is really gone.
    pub(super) fn abandon(mut self, leaving: &mut JoinSet<Left>) {
        let (number, pid) = (self.number, self.pid());
        self.kill();
        leaving.spawn(async move {
            let status = self.reap().await;
            Left {
                number,
                pid,
                status,
            }
        });
    }

    /// Asks it to exit by closing its input, and kills it if it has not done so after `limit`.
    pub(super) fn dismiss(mut self, limit: Duration, leaving: &mut JoinSet<Left>) {
        let (number, pid) = (self.number, self.pid());
        leaving.spawn(async move {
            drop(self.stdin.take());
            let status = match timeout(limit, self.reap()).await {
                Ok(status) => status,
                Err(_still_there) => {
                    self.kill();
                    self.reap().await
                }
            };
            Left {
                number,
                pid,
                status,
            }
        });
    }
}

impl Process {
    /// Waits until it is gone.
    async fn reap(&mut self) -> Option<ExitStatus> {
        let pid = self.pid();
        let status = self.child.wait().await.ok();
        if let Some(pid) = pid {
            self.children.remove(pid);
        }
        status
    }

    /// Kills the probe with its process group.
    fn kill(&mut self) {
        let Some(id) = self.child.id() else { return };
        if let Some(group) = Pid::from_raw(id.cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An input for a process, with its settings in it.
///
/// They are written before anybody reads, so that a process starts with all of them or not at all.
fn filled_input(configure: &Configure) -> io::Result<(pipe::Sender, PipeReader)> {
    let line = protocol::Command::Configure(Box::new(configure.clone())).line();
    let (input, mut stdin) = io::pipe()?;
    // A write that waited for a reader would wait for ever.
    ioctl_fionbio(&stdin, true)?;
    // A pipe may be smaller than usual: the kernel gives a user who has many only a page for each.
    let taken = match line.len() > CONFIGURE_LIMIT {
        true => CONFIGURE_LIMIT,
        false => stdin.write(line.as_bytes())?,
    };
    if taken < line.len() {
        let why = format!(
            "its settings are {} bytes long, and its input takes {taken} at once",
            line.len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok((pipe::Sender::from_owned_fd(OwnedFd::from(stdin))?, input))
}

/// Passes the lines of a probe on. A line that is no message is told, and costs nothing else; one that
/// is longer than the limit ends the probe.
async fn read(number: Number, lines: ChildStdout, heard: mpsc::Sender<(Number, Heard)>) {
    let mut lines = BufReader::new(lines);
    let mut line = Vec::new();
    let end = loop {
        line.clear();
        line.shrink_to(USUAL_LINE);
        // The limit is some megabytes, and `usize` has no more than 64 bits.
        let mut limited = (&mut lines).take(LINE_LIMIT as u64);
        let said = match limited.read_until(b'\n', &mut line).await {
            Ok(0) => break "it ended".to_owned(),
            Ok(length) if length == LINE_LIMIT && !line.ends_with(b"\n") => {
                break format!("it wrote a line of more than {LINE_LIMIT} bytes");
            }
            Err(error) => break format!("its output cannot be read: {error}"),
            Ok(_) if line.trim_ascii().is_empty() => continue,
            Ok(_) => match Message::parse(&line) {
                Ok(Some(message)) => Heard::Message(Box::new(message)),
                Ok(None) => continue,
                Err(error) => Heard::Nonsense(error),
            },
        };
        if heard.send((number, said)).await.is_err() {
            return;
        }
    };
    let _ = heard.send((number, Heard::End(end))).await;
}
