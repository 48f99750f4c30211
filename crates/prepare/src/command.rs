//! Commands of users and vendors: deep checks, `preStart` and resets. Each has a process group of its
//! own, an environment that is said here, a limit, and the end of its output kept. It is ended with all
//! that it started, when its time is over, when nobody waits for it any more, and when the agent ends.
//!
//! A process stands between the agent and the command ([`shim()`]), because nobody else could do that
//! after the agent was killed. Nothing here blocks: a process that does not end is left to its shim.

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
use probe::supervisor::Children;
use rules::Vendor;
use tokio::{
    io::AsyncReadExt,
    net::{self, unix::pipe},
    process::{Child, Command},
    time::{Instant, sleep_until, timeout},
};

use self::output::Tail;
pub use self::{output::TAIL, shim::shim};

/// Variables of the agent that a command has too.
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

/// How long the end of a command may take, after it ended or was told to, before nobody waits for it.
const AFTER: Duration = Duration::from_secs(1);

/// The longest line that a shim says.
const LINE: u64 = 4096;

/// Starts commands.
#[derive(Clone, Debug)]
pub struct Runner {
    shim: Vec<OsString>,
    inherited: Vec<(OsString, OsString)>,
    children: Children,
}

/// A command and what it is told.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// A program and its arguments; the program is looked for in `PATH`.
    pub command: &'a [String],
    /// The variables that say what it is for.
    pub about: Vec<(&'static str, String)>,
}

/// A command that was started. Dropped, it is ended with all that it started.
#[derive(Debug)]
pub struct Running {
    program: String,
    shim: Child,
    /// The end of it is the order to end the command.
    control: Option<net::UnixStream>,
    output: pipe::Receiver,
    tail: Tail,
    _reserved: Reserved,
}

/// The end of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The program.
    pub program: String,
    /// The way it ended.
    pub fate: Fate,
    /// The end of what it printed, without white space around it.
    pub output: String,
}

/// The way in which a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// By itself, or by somebody else's signal.
    Exited(ExitStatus),
    /// Its time was over.
    Late,
    /// Nobody wanted it any more.
    Stopped,
}

/// A command that could not be run. That says nothing about its device.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its list of words is empty.
    #[error("no command is named")]
    Empty,
    /// The process for it could not be made.
    #[error("`{program}` cannot be started")]
    Spawn {
        /// The program.
        program: String,
        /// The system's word.
        source: io::Error,
    },
    /// The program does not exist, or is none.
    #[error("`{program}` cannot be started: {why}")]
    Start {
        /// The program.
        program: String,
        /// The system's word.
        why: String,
    },
    /// Its shim was killed.
    #[error("`{program}` was lost: the process that attends to it ended")]
    Lost {
        /// The program.
        program: String,
    },
}

/// A process that nobody else may reap.
#[derive(Debug)]
struct Reserved {
    children: Children,
    pid: Option<u32>,
}

// === impl Runner ===

impl Runner {
    /// A runner whose commands run below `shim`, a program with arguments that calls [`shim()`] with what
    /// follows `--`. Of `variables` commands have those that every program needs.
    pub fn new(
        shim: impl IntoIterator<Item = OsString>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        children: Children,
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
    /// No command is named, or no process can be made. A program that cannot be started is told by
    /// [`Running::finish`].
    pub fn start(&self, call: &Call<'_>) -> Result<Running, Error> {
        let program = call.command.first().ok_or(Error::Empty)?;
        let spawned = self.spawn(call, program);
        spawned.map_err(|source| Error::Spawn {
            program: program.clone(),
            source,
        })
    }

    /// Runs a command until it has ended or `deadline` has come.
    ///
    /// # Errors
    /// The command cannot be run.
    pub async fn run(&self, call: &Call<'_>, deadline: Instant) -> Result<Ended, Error> {
        let mut running = self.start(call)?;
        running.finish(deadline, std::future::pending()).await
    }

    fn spawn(&self, call: &Call<'_>, program: &str) -> io::Result<Running> {
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
            // Signals to the agent's group are for the agent.
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(stdin)))
            .stdout(writing.try_clone()?)
            .stderr(writing)
            .spawn()?;
        // Before anybody else gets to run.
        let reserved = Reserved::new(&self.children, child.id());
        Ok(Running {
            program: program.to_owned(),
            shim: child,
            control: Some(net::UnixStream::from_std(control)?),
            output: pipe::Receiver::from_owned_fd(OwnedFd::from(output))?,
            tail: Tail::default(),
            _reserved: reserved,
        })
    }
}

// === impl Running ===

impl Running {
    /// Waits until the command has ended; at `deadline`, or when `stop` is over, it is ended. Processes
    /// that do not end are not waited for.
    ///
    /// # Errors
    /// The program cannot be started, or it is not known what became of it.
    pub async fn finish(
        &mut self,
        deadline: Instant,
        stop: impl Future<Output = ()>,
    ) -> Result<Ended, Error> {
        let fate = {
            let word = word(&mut self.control);
            let reading = async {
                self.tail.read(&mut self.output).await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                word = word => parse(&word, &self.program),
                () = sleep_until(deadline) => Ok(Fate::Late),
                () = stop => Ok(Fate::Stopped),
                () = reading => Ok(Fate::Stopped),
            }
        };
        // All that is left goes now, and with it the other end of the output.
        self.control = None;
        let rest = async {
            self.tail.read(&mut self.output).await;
            let _ = self.shim.wait().await;
        };
        let _ = timeout(AFTER, rest).await;
        Ok(Ended {
            program: self.program.clone(),
            fate: fate?,
            output: self.tail.text(),
        })
    }

    /// Waits until no process of it is left.
    pub async fn gone(&mut self) {
        let _ = self.shim.wait().await;
    }
}

// === impl Ended ===

impl Ended {
    /// Success, or the reason why it did not end well in its time, in one line for a person.
    ///
    /// # Errors
    /// The command failed.
    pub fn success(&self) -> Result<(), String> {
        let Self {
            program, output, ..
        } = self;
        let output = match output::line(output) {
            line if line.is_empty() => line,
            line => format!(": {line}"),
        };
        match self.fate {
            Fate::Exited(status) if status.success() => Ok(()),
            Fate::Exited(status) => Err(format!("`{program}` ended with {status}{output}")),
            Fate::Late => Err(format!("`{program}` did not end in time{output}")),
            Fate::Stopped => Err(format!("`{program}` was ended{output}")),
        }
    }
}

// === impl Error ===

impl Error {
    /// The error with its cause, for a person.
    pub(crate) fn explain(&self) -> String {
        match self.source() {
            Some(source) => format!("{self}: {source}"),
            None => self.to_string(),
        }
    }
}

// === impl Reserved ===

impl Reserved {
    fn new(children: &Children, pid: Option<u32>) -> Self {
        if let Some(pid) = pid {
            children.add(pid);
        }
        Self {
            children: children.clone(),
            pid,
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            self.children.remove(pid);
        }
    }
}

/// What a command is told of its device, and of the resource as which it is handed over. The programs of
/// the vendor are told the device in their own way too.
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

/// The line that the shim says; what there is of it if the shim ends.
async fn word(control: &mut Option<net::UnixStream>) -> String {
    let mut bytes = Vec::new();
    if let Some(control) = control {
        let mut limited = control.take(LINE);
        while bytes.last() != Some(&b'\n') && matches!(limited.read_buf(&mut bytes).await, Ok(1..))
        {
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Fate of the program, as its shim says it.
fn parse(line: &str, program: &str) -> Result<Fate, Error> {
    let program = program.to_owned();
    match line.trim_end().split_once(' ') {
        Some(("status", raw)) => match raw.parse() {
            Ok(raw) => Ok(Fate::Exited(ExitStatus::from_raw(raw))),
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
