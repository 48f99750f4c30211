//! A mount namespace that looks like the simulated node.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context as _, ensure};
use rustix::process::Pid;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, Command},
    time::Instant,
};

use super::{Launch, Process};

/// The mounts, and the wait for a word.
const ENTER: &str = include_str!("enter.sh");

/// What a program sees of the node, and the folder in which it meets the kubelet.
#[derive(Clone, Debug)]
pub(super) struct Namespace {
    node: PathBuf,
    work: PathBuf,
}

/// A process in its namespace that will become the program at a word.
#[derive(Debug)]
pub(super) struct Waiting {
    child: Child,
    word: ChildStdin,
    work: PathBuf,
}

// === impl Namespace ===

impl Namespace {
    /// A namespace for the node in that folder; makes the folders that it needs in `work`.
    ///
    /// # Errors
    /// If a folder cannot be made.
    pub(super) fn of(node: &Path, work: &Path) -> anyhow::Result<Self> {
        for folder in ["plugins", "pods", "run"] {
            fs_err::create_dir_all(work.join(folder))?;
        }
        Ok(Self {
            node: node.to_owned(),
            work: work.to_owned(),
        })
    }

    /// Goes in, up to the point where only the word is missing.
    ///
    /// # Errors
    /// If there may be no namespaces here, or a mount fails.
    pub(super) async fn enter(&self, launch: &Launch) -> anyhow::Result<Waiting> {
        let notes = self.work.join("enter");
        let mut command = Command::new("unshare");
        command.arg("--mount");
        if !rustix::process::geteuid().is_root() {
            command.arg("--map-root-user");
        }
        command
            .args(["--", "bash", "-c", ENTER, "enter.sh"])
            .args([&self.node, &self.work])
            .arg("--")
            .arg(&launch.binary)
            .args(&launch.args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs_err::File::create(&notes)?.into_file())
            .kill_on_drop(true);
        let spawned = command.spawn();
        let mut child = spawned.context("cannot run unshare; install util-linux")?;
        let word = child.stdin.take().context("no way to give the word")?;
        let out = child.stdout.take().context("no way to hear it is ready")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).await?;
        ensure!(
            line == "ready\n",
            "cannot make a mount namespace; be root, or allow user namespaces: {}",
            fs_err::read_to_string(&notes)?.trim()
        );
        Ok(Waiting {
            child,
            word,
            work: self.work.clone(),
        })
    }
}

// === impl Waiting ===

impl Waiting {
    /// Gives the word: from now on it is the program.
    ///
    /// # Errors
    /// If the process has gone.
    pub(super) async fn go(mut self) -> anyhow::Result<Process> {
        let pid = self.child.id();
        let pid = pid.and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
        let pid = pid.context("the program ended at once")?;
        let began = Instant::now();
        self.word.write_all(b"\n").await?;
        Ok(Process {
            child: self.child,
            pid,
            began,
            out: self.work.join("out"),
            err: self.work.join("err"),
        })
    }
}
