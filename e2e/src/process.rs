//! Long-running programs of the node, each with a log of its own, and the processes in its
//! containers.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, WaitOptions};
use tokio::process::{Child, Command};

use crate::{numa, place};

/// Time that a program may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(30);

/// A started program.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
}

/// Identity of a process: its start time tells it from a later process with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// Process id.
    pub pid: i32,
    started: u64,
}

// === impl Process ===

impl Process {
    /// Starts a program and appends its output to the log `name`.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(name: &str, command: &mut Command) -> Result<Self> {
        let log = fs_err::OpenOptions::new()
            .create(true)
            .append(true)
            .open(place::log(name))?
            .into_parts()
            .0;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self {
            name: name.to_owned(),
            child,
        })
    }

    /// Fails if the program has ended.
    ///
    /// # Errors
    /// With the exit status and the name of the log.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended with {status}", self.name),
        }
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Errors
    /// If the program does not end.
    pub async fn stop(self) -> Result<ExitStatus> {
        self.end(Signal::TERM).await
    }

    /// Kills the program with SIGKILL.
    ///
    /// # Errors
    /// If the program does not end.
    pub async fn kill(self) -> Result<ExitStatus> {
        self.end(Signal::KILL).await
    }

    async fn end(mut self, signal: Signal) -> Result<ExitStatus> {
        if let Some(pid) = self.pid() {
            send(pid, signal)?;
        }
        let name = &self.name;
        tokio::time::timeout(GRACE, self.child.wait())
            .await
            .with_context(|| format!("{name} still runs {GRACE:?} after {signal:?}"))?
            .with_context(|| format!("cannot wait for {name}"))
    }

    /// Process id while the program runs.
    pub fn pid(&self) -> Option<i32> {
        self.child.id().and_then(|pid| i32::try_from(pid).ok())
    }
}

// === impl Id ===

impl Id {
    /// Processors that the process may run on.
    ///
    /// # Errors
    /// If the process has ended.
    pub fn cpus(&self) -> Result<Vec<u32>> {
        let status = fs_err::read_to_string(format!("/proc/{}/status", self.pid))?;
        let mut lines = status.lines();
        let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        Ok(numa::numbers(list.unwrap_or_default()))
    }
}

/// Runs a short program to its end and returns its output.
///
/// # Errors
/// If the program fails; the message has its output.
pub async fn run<S: AsRef<OsStr>>(program: &str, args: &[S]) -> Result<String> {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .await
        .with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        bail!("{program} ended with {}: {}", output.status, words.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Sends a signal. A process that has ended is no error.
///
/// # Errors
/// If the signal may not be sent.
pub fn send(pid: i32, signal: Signal) -> Result<()> {
    let target = Pid::from_raw(pid).with_context(|| format!("{pid} is no process"))?;
    match rustix::process::kill_process(target, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot signal process {pid}")),
    }
}

/// Running processes whose command line satisfies `wanted`.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn find(wanted: impl Fn(&[String]) -> bool) -> Result<Vec<Id>> {
    let mut found = Vec::new();
    for pid in pids()? {
        let Ok(line) = fs_err::read(format!("/proc/{pid}/cmdline")) else {
            continue;
        };
        let words: Vec<String> = line
            .split(|byte| *byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        if wanted(&words)
            && let Some((started, _)) = stat(pid)
        {
            found.push(Id { pid, started });
        }
    }
    found.sort();
    Ok(found)
}

/// Zombies whose parent is the first process of the namespace.
pub fn zombies() -> BTreeSet<i32> {
    let orphaned = |pid: &i32| stat(*pid).is_some_and(|(_, zombie_of)| zombie_of == Some(1));
    pids()
        .unwrap_or_default()
        .into_iter()
        .filter(orphaned)
        .collect()
}

/// Reaps a process that has ended.
pub fn collect(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// All process ids.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn pids() -> Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir("/proc")? {
        found.extend(entry?.file_name().to_string_lossy().parse::<i32>());
    }
    Ok(found)
}

/// Start time of a process, and its parent if it is a zombie.
fn stat(pid: i32) -> Option<(u64, Option<i32>)> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let zombie_of = (*fields.first()? == "Z").then_some(parent);
    Some((fields.get(19)?.parse().ok()?, zombie_of))
}
