//! Commands of users and vendors: deep checks, `preStart` and resets. Each has a process group of its
//! own, the environment that is defined here, and a time limit; the end of its output is kept. A command
//! is killed with all its descendants when its time is over, when its caller drops it, and when the
//! agent ends.
//!
//! Between the agent and the command is another process, the [`shim()`]. It kills the command even if the
//! agent was killed by SIGKILL. No call blocks: a process that does not end is left to its shim.

mod output;
mod shim;

use std::{
    error::Error as _,
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::ExitStatusExt},
    },
    process::{ExitStatus, Stdio},
    time::Duration,
};

use model::{Device, ResourceName};
use probe::supervisor::ChildRegistry;
use rules::Vendor;
use tokio::{
    io::AsyncReadExt,
    net::{self, unix::pipe},
    process::{Child, Command},
    time::{Instant, sleep_until, timeout},
};

use self::output::OutputTail;
pub use self::{output::TAIL, shim::shim};

/// Names of the agent's variables that a command inherits.
const INHERITED: [&str; 8] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "NODE_NAME",
    "PATH",
    "TMPDIR",
    "TZ",
];

/// Time limit for the shim to end, after the command has ended or was told to.
const AFTER: Duration = Duration::from_secs(1);

/// Length limit, in bytes, of the line that a shim writes.
const LINE: u64 = 4096;

/// Runner of commands, each below a shim.
#[derive(Clone, Debug)]
pub struct Runner {
    shim: Vec<OsString>,
    inherited: Vec<(OsString, OsString)>,
    children: ChildRegistry,
}

/// A command with its variables.
#[derive(Clone, Debug)]
pub struct CommandCall<'a> {
    /// Program and arguments. The program is searched in `PATH`.
    pub command: &'a [String],
    /// Variables that describe the device and the resource.
    pub about: Vec<(&'static str, String)>,
}

/// A started command. A drop kills it with all its descendants.
#[derive(Debug)]
pub struct RunningCommand {
    program: String,
    shim: Child,
    /// Socket to the shim. To close it is the order to kill the command.
    control: Option<net::UnixStream>,
    output: pipe::Receiver,
    tail: OutputTail,
    _reserved: ReservedChild,
}

/// Result of a command that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedCommand {
    /// Name or path of the program.
    pub program: String,
    /// Cause of the end.
    pub fate: EndCause,
    /// Last [`TAIL`] bytes of the output, without white space around them.
    pub output: String,
}

/// Cause of a command's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// The command exited, or a signal from outside killed it.
    Exited(ExitStatus),
    /// The command was killed at its time limit.
    Late,
    /// The command was killed because its caller stopped it.
    Stopped,
}

/// Error of a command that could not be run. It is no evidence against the device.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The list of words is empty.
    #[error("no command is named")]
    Empty,
    /// The process of the shim could not be made.
    #[error("`{program}` cannot be started")]
    Spawn {
        /// Name or path of the program.
        program: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// The shim could not start the program, for example because it does not exist.
    #[error("`{program}` cannot be started: {why}")]
    Start {
        /// Name or path of the program.
        program: String,
        /// Text of the system's error.
        why: String,
    },
    /// The shim ended without a report.
    #[error("`{program}` was lost: the process that attends to it ended")]
    Lost {
        /// Name or path of the program.
        program: String,
    },
}

// The agent is a child subreaper and reaps orphans. It must leave the shims to tokio, which waits for them.
/// Entry of a shim in the list of children that the agent's reaper leaves alone.
#[derive(Debug)]
struct ReservedChild {
    children: ChildRegistry,
    pid: Option<u32>,
}

// === impl Runner ===

impl Runner {
    /// Makes a runner. `shim` is a program with arguments that calls [`shim()`] with the words after `--`.
    /// Commands inherit only those of `variables` that are in a fixed list, such as `PATH`.
    pub fn new(
        shim: impl IntoIterator<Item = OsString>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        children: ChildRegistry,
    ) -> Self {
        let is_inherited = |name: &OsStr| INHERITED.iter().any(|known| name == *known);
        let inherited = variables.into_iter();
        Self {
            shim: shim.into_iter().collect(),
            inherited: inherited.filter(|(name, _)| is_inherited(name)).collect(),
            children,
        }
    }

    /// Starts a command.
    ///
    /// # Errors
    /// The command is empty, or the shim cannot be started. [`RunningCommand::wait_for_end`] reports a program that cannot
    /// be started.
    pub fn start_command(&self, call: &CommandCall<'_>) -> Result<RunningCommand, Error> {
        let program = call.command.first().ok_or(Error::Empty)?;
        let spawned = self.spawn_shim(call, program);
        spawned.map_err(|source| Error::Spawn {
            program: program.clone(),
            source,
        })
    }

    /// Runs a command until it has ended or `deadline` has come.
    ///
    /// # Errors
    /// The command cannot be run.
    pub async fn run_to_end(
        &self,
        call: &CommandCall<'_>,
        deadline: Instant,
    ) -> Result<EndedCommand, Error> {
        let mut running = self.start_command(call)?;
        running.wait_for_end(deadline, std::future::pending()).await
    }

    fn spawn_shim(&self, call: &CommandCall<'_>, program: &str) -> io::Result<RunningCommand> {
        let [shim, args @ ..] = self.shim.as_slice() else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no shim"));
        };
        let (control, stdin) = UnixStream::pair()?;
        control.set_nonblocking(true)?;
        let (output, writing) = io::pipe()?;
        let child = Command::new(shim)
            .arg0("ostler-shim")
            .args(args)
            .arg("--")
            .args(call.command)
            .env_clear()
            .envs(self.inherited.iter().map(|(name, value)| (name, value)))
            .envs(call.about.iter().map(|(name, value)| (name, value)))
            // A signal to the agent's process group, such as Ctrl-C on a terminal, must not reach the shim.
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(stdin)))
            .stdout(writing.try_clone()?)
            .stderr(writing)
            .spawn()?;
        // Without an await since the start, so that the agent's reaper has not run yet.
        let reserved = ReservedChild::new(&self.children, child.id());
        Ok(RunningCommand {
            program: program.to_owned(),
            shim: child,
            control: Some(net::UnixStream::from_std(control)?),
            output: pipe::Receiver::from_owned_fd(OwnedFd::from(output))?,
            tail: OutputTail::default(),
            _reserved: reserved,
        })
    }
}

// === impl RunningCommand ===

impl RunningCommand {
    /// Waits until the command has ended. At `deadline`, or when `stop` completes, it is killed. The call
    /// returns at most a second later, even if a process does not end.
    ///
    /// # Errors
    /// The program cannot be started, or the shim ended without a report.
    pub async fn wait_for_end(
        &mut self,
        deadline: Instant,
        stop: impl Future<Output = ()>,
    ) -> Result<EndedCommand, Error> {
        let fate = {
            let word = read_shim_line(&mut self.control);
            let reading = async {
                self.tail.read_output(&mut self.output).await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                word = word => parse_shim_line(&word, &self.program),
                () = sleep_until(deadline) => Ok(EndCause::Late),
                () = stop => Ok(EndCause::Stopped),
                () = reading => Ok(EndCause::Stopped),
            }
        };
        // The shim kills all processes that are left, also after a normal end. That closes the other end
        // of the output.
        self.control = None;
        let rest = async {
            self.tail.read_output(&mut self.output).await;
            let _ = self.shim.wait().await;
        };
        let _ = timeout(AFTER, rest).await;
        Ok(EndedCommand {
            program: self.program.clone(),
            fate: fate?,
            output: self.tail.kept_text(),
        })
    }

    /// Waits until the last process of the command has ended. There is no time limit.
    pub async fn wait_until_gone(&mut self) {
        let _ = self.shim.wait().await;
    }
}

// === impl EndedCommand ===

impl EndedCommand {
    /// Checks that the command exited with status 0 within its time.
    ///
    /// # Errors
    /// The command failed; the text is one line for an operator, with the end of the output.
    pub fn success(&self) -> Result<(), String> {
        let Self {
            program, output, ..
        } = self;
        let output = match output::to_one_line(output) {
            line if line.is_empty() => line,
            line => format!(": {line}"),
        };
        match self.fate {
            EndCause::Exited(status) if status.success() => Ok(()),
            EndCause::Exited(status) => Err(format!("`{program}` ended with {status}{output}")),
            EndCause::Late => Err(format!("`{program}` did not end in time{output}")),
            EndCause::Stopped => Err(format!("`{program}` was ended{output}")),
        }
    }
}

// === impl Error ===

impl Error {
    /// Text of the error with its cause, for an operator.
    pub(crate) fn explain(&self) -> String {
        match self.source() {
            Some(source) => format!("{self}: {source}"),
            None => self.to_string(),
        }
    }
}

// === impl ReservedChild ===

impl ReservedChild {
    fn new(children: &ChildRegistry, pid: Option<u32>) -> Self {
        if let Some(pid) = pid {
            children.add_pid(pid);
        }
        Self {
            children: children.clone(),
            pid,
        }
    }
}

impl Drop for ReservedChild {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            self.children.remove_pid(pid);
        }
    }
}

/// Makes the variables that describe a device and its resource. If the vendor's programs select devices by
/// a variable of their own, such as `CUDA_VISIBLE_DEVICES`, it is set too.
pub(crate) fn about(
    device: &Device,
    resource: Option<&ResourceName>,
    vendor: &Vendor,
) -> Vec<(&'static str, String)> {
    let pci = device.pci.map(|pci| pci.to_string());
    let index = device.index.map(|index| index.to_string());
    let mut about = vec![
        ("OSTLER_DEVICE", device.id.to_string()),
        ("OSTLER_DEVICE_INDEX", index.unwrap_or_default()),
        ("OSTLER_DEVICE_PCI", pci.unwrap_or_default()),
    ];
    let name = vendor.device_variable;
    about.extend(name.map(|name| (name, device.id.to_string())));
    about.extend(resource.map(|resource| ("OSTLER_RESOURCE", resource.to_string())));
    about
}

/// Reads the line that the shim writes. If the shim ends, the line may be empty or cut off.
async fn read_shim_line(control: &mut Option<net::UnixStream>) -> String {
    let mut bytes = Vec::new();
    if let Some(control) = control {
        let mut limited = control.take(LINE);
        while bytes.last() != Some(&b'\n') && matches!(limited.read_buf(&mut bytes).await, Ok(1..))
        {
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Parses the line of a shim: `status RAW` or `error TEXT`.
fn parse_shim_line(line: &str, program: &str) -> Result<EndCause, Error> {
    let program = program.to_owned();
    match line.trim_end().split_once(' ') {
        Some(("status", raw)) => match raw.parse() {
            Ok(raw) => Ok(EndCause::Exited(ExitStatus::from_raw(raw))),
            Err(_) => Err(Error::Lost { program }),
        },
        Some(("error", why)) => Err(Error::Start {
            program,
            why: why.to_owned(),
        }),
        _ => Err(Error::Lost { program }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_its_device_and_its_resource_if_there_is_one() {
        let device = Device {
            pci: Some("0000:3b:00.0".parse().unwrap()),
            ..Device::card_of("acme", "GPU-1", "A100")
        };
        let resource = "acme.com/gpu".parse().unwrap();
        let vendor = Vendor {
            device_variable: Some("ACME_DEVICE"),
            ..rules::PLAIN
        };
        let told = about(&device, Some(&resource), &vendor);
        let told: Vec<_> = told.iter().map(|(name, text)| (*name, &**text)).collect();
        let device_only = [
            ("OSTLER_DEVICE", "GPU-1"),
            ("OSTLER_DEVICE_INDEX", ""),
            ("OSTLER_DEVICE_PCI", "0000:3b:00.0"),
        ];
        assert_eq!(told[..3], device_only);
        let more = [
            ("ACME_DEVICE", "GPU-1"),
            ("OSTLER_RESOURCE", "acme.com/gpu"),
        ];
        assert_eq!(told[3..], more);
        assert_eq!(about(&device, None, &rules::PLAIN).len(), 3);
    }
}
