//! One probe process: its start, the reader of its lines, and its end.

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

use super::{ChildRegistry, SupervisorSettings};
use crate::protocol::{self, CONFIGURE_LIMIT, Configure, LINE_LIMIT, Message};

/// Capacity of the line buffer that is kept for the next line. A report is much longer than the
/// lines that follow it.
const USUAL_LINE: usize = 64 << 10;

/// Task of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Reads all cards that are neither stuck nor released.
    Main,
    /// Tries one stuck card, and no other.
    Solo(CardRef),
}

/// Number of a process, counted over all supervisors of a backend.
pub(super) type ProcessNumber = u64;

/// Output of a process.
#[derive(Debug)]
pub(super) enum ProcessOutput {
    /// Valid message.
    Message(Box<Message>),
    /// Line that is not a valid message.
    InvalidLine(protocol::Error),
    /// End of the output, with the reason: the process exited, closed its output, or wrote a line
    /// that is too long.
    End(String),
}

/// Running probe process. Dropping the value kills the process group.
#[derive(Debug)]
pub(super) struct ProbeProcess {
    pub(super) role: Role,
    pub(super) heard: Instant,
    number: ProcessNumber,
    children: ChildRegistry,
    child: Child,
    stdin: Option<pipe::Sender>,
}

/// Process that has ended and was reaped.
#[derive(Debug)]
pub(super) struct ExitedProcess {
    pub(super) number: ProcessNumber,
    pub(super) pid: Option<u32>,
    pub(super) status: Option<ExitStatus>,
}

/// Arguments of the start of a process.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    pub(super) settings: &'a SupervisorSettings,
    pub(super) number: ProcessNumber,
    pub(super) role: Role,
    /// Settings of this process, as opposed to those of the whole backend.
    pub(super) configure: &'a Configure,
}

/// Command line of a probe: program and arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Path of the executable.
    pub path: PathBuf,
    /// Arguments, without the program's name.
    pub args: Vec<String>,
}

// === impl ProbeProcess ===

impl ProbeProcess {
    /// Starts a probe process. A task in `readers` forwards its lines to `heard`.
    ///
    /// # Errors
    /// The program cannot be started, or the line of settings does not fit into the pipe. No process is
    /// left in either case.
    pub(super) fn start_probe(
        launch: &Launch<'_>,
        readers: &mut JoinSet<()>,
        heard: mpsc::Sender<(ProcessNumber, ProcessOutput)>,
    ) -> io::Result<Self> {
        let Launch {
            settings,
            number,
            role,
            configure,
        } = *launch;
        let (stdin, input) = filled_input(configure)?;
        let mut child = Command::new(&settings.program.path)
            // Not `nvidia-device-plugin`: the agent may run under this name, and config-manager of
            // k8s-device-plugin sends SIGHUP to the first process whose argv[0] is this name
            // (cmd/config-manager/main.go).
            .arg0("ostler-probe")
            .args(&settings.program.args)
            // Signals to the agent's process group, such as Ctrl-C, must not end the probes: the
            // agent ends them itself, with time to close the driver.
            .process_group(0)
            .stdin(Stdio::from(input))
            .stdout(Stdio::piped())
            .spawn()?;
        let pid = child.id();
        if let Some(pid) = pid {
            settings.children.add_pid(pid);
        }
        if let Some(stdout) = child.stdout.take() {
            readers.spawn(forward_lines(number, stdout, heard));
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

    /// Returns the process id; `None` after the process was reaped.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Sends a command. Returns false if the pipe is full or closed; does not wait.
    pub(super) fn send_command(&mut self, command: &protocol::Command) -> bool {
        let line = command.line();
        let Some(stdin) = &mut self.stdin else {
            return false;
        };
        // A command is shorter than PIPE_BUF (4,096 bytes): a non-blocking write is whole or fails
        // (pipe(7)).
        let written = stdin.write_all(line.as_bytes()).now_or_never();
        matches!(written, Some(Ok(())))
    }

    /// Kills the process without waiting for its end. The task in `leaving` ends when the process
    /// is gone.
    // A process in an uninterruptible sleep in the driver does not die of SIGKILL until the kernel
    // function returns, which may be never.
    pub(super) fn abandon(mut self, leaving: &mut JoinSet<ExitedProcess>) {
        let (number, pid) = (self.number, self.pid());
        self.kill_group();
        leaving.spawn(async move {
            let status = self.reap().await;
            ExitedProcess {
                number,
                pid,
                status,
            }
        });
    }

    /// Asks the process to exit by closing its input, and kills it after `limit`. Does not wait.
    pub(super) fn stop_gracefully(mut self, limit: Duration, leaving: &mut JoinSet<ExitedProcess>) {
        let (number, pid) = (self.number, self.pid());
        leaving.spawn(async move {
            drop(self.stdin.take());
            let status = match timeout(limit, self.reap()).await {
                Ok(status) => status,
                Err(_still_there) => {
                    self.kill_group();
                    self.reap().await
                }
            };
            ExitedProcess {
                number,
                pid,
                status,
            }
        });
    }
}

impl ProbeProcess {
    /// Waits for the end of the process and reaps it.
    async fn reap(&mut self) -> Option<ExitStatus> {
        let pid = self.pid();
        let status = self.child.wait().await.ok();
        if let Some(pid) = pid {
            self.children.remove_pid(pid);
        }
        status
    }

    /// Kills the process group: the probe and all processes that it started.
    fn kill_group(&mut self) {
        let Some(id) = self.child.id() else { return };
        if let Some(group) = Pid::from_raw(id.cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for ProbeProcess {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// Creates the standard input of a process, with the line of settings already in the pipe.
///
/// A process thus starts with complete settings, or not at all.
fn filled_input(configure: &Configure) -> io::Result<(pipe::Sender, PipeReader)> {
    let line = protocol::Command::Configure(Box::new(configure.clone())).line();
    let (input, mut stdin) = io::pipe()?;
    // Nothing reads yet: a blocking write to a full pipe would never return.
    ioctl_fionbio(&stdin, true)?;
    // A pipe usually holds 64 KiB. A user above /proc/sys/fs/pipe-user-pages-soft gets pipes of
    // only one or two pages (pipe(7)).
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

/// Forwards the lines of a probe. An invalid line is forwarded as such; a line beyond the limit
/// ends the probe. Lines of unknown types are dropped.
async fn forward_lines(
    number: ProcessNumber,
    lines: ChildStdout,
    heard: mpsc::Sender<(ProcessNumber, ProcessOutput)>,
) {
    let mut lines = BufReader::new(lines);
    let mut line = Vec::new();
    let end = loop {
        line.clear();
        line.shrink_to(USUAL_LINE);
        // The cast is lossless: `usize` has at most 64 bits.
        let mut limited = (&mut lines).take(LINE_LIMIT as u64);
        let said = match limited.read_until(b'\n', &mut line).await {
            Ok(0) => break "it ended".to_owned(),
            Ok(length) if length == LINE_LIMIT && !line.ends_with(b"\n") => {
                break format!("it wrote a line of more than {LINE_LIMIT} bytes");
            }
            Err(error) => break format!("its output cannot be read: {error}"),
            Ok(_) if line.trim_ascii().is_empty() => continue,
            Ok(_) => match Message::parse_line(&line) {
                Ok(Some(message)) => ProcessOutput::Message(Box::new(message)),
                Ok(None) => continue,
                Err(error) => ProcessOutput::InvalidLine(error),
            },
        };
        if heard.send((number, said)).await.is_err() {
            return;
        }
    };
    let _ = heard.send((number, ProcessOutput::End(end))).await;
}
