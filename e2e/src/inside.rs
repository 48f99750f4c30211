//! The half inside the namespaces, which is their first process. It builds the root, starts the
//! node and runs the tests. When it ends, the kernel kills all processes that it started.

use std::{
    collections::BTreeSet,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{ExitCode, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

use crate::{agent, node::Node, place, process, root, say::say, scenarios};

/// File in the work folder with the names of the namespaces.
pub const NAMESPACES: &str = "namespaces";

/// Work to do on the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Tests for every change.
    Smoke,
    /// All tests.
    Full,
    /// An interactive shell.
    Shell,
}

// === impl Mode ===

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Smoke => "smoke",
            Self::Full => "full",
            Self::Shell => "shell",
        })
    }
}

/// Builds the node's root, moves into it and starts this program again there.
///
/// # Errors
/// If the root cannot be built.
pub fn enter(work: &Path, then: &[String]) -> Result<ExitCode> {
    ensure!(
        rustix::process::getpid().is_init(),
        "only `e2e/run` starts this: it must be the first process of a namespace"
    );
    note_namespaces(work)?;
    root::build(work)?;
    let program = place::program("e2e");
    // The caller's environment must not reach the node.
    let terminal = std::env::var_os("TERM").unwrap_or_else(|| "dumb".into());
    let error = std::process::Command::new(&program)
        .args(then)
        .env_clear()
        .env("PATH", place::PATH)
        .env("HOME", "/root")
        .env("TERM", terminal)
        .exec();
    Err(error).with_context(|| format!("cannot start {program}"))
}

/// Runs the tests, or the shell, on a new node.
///
/// # Errors
/// If the node does not start.
pub async fn run(mode: Mode, only: Option<&str>) -> Result<ExitCode> {
    process::run("ip", &["link", "set", "lo", "up"])
        .await
        .context("the loopback device (Debian package iproute2)")?;
    tokio::select! {
        code = on_node(mode, only) => code,
        () = reap() => unreachable!("reaping goes on for ever"),
    }
}

async fn on_node(mode: Mode, only: Option<&str>) -> Result<ExitCode> {
    let mut node = match Node::up().await {
        Ok(node) => node,
        Err(error) => {
            for program in ["containerd", "kubelet", "agent"] {
                scenarios::show_tail(program, 0);
            }
            return Err(error.context("the node did not come up"));
        }
    };
    match mode {
        Mode::Shell => shell(&node).await,
        Mode::Smoke | Mode::Full => {
            let failed = scenarios::run(&mut node, mode == Mode::Full, only).await?;
            node.down().await?;
            Ok(match failed {
                0 => ExitCode::SUCCESS,
                _ => ExitCode::FAILURE,
            })
        }
    }
}

/// Opens a shell on the node.
async fn shell(node: &Node) -> Result<ExitCode> {
    say(format_args!(
        "a node with {} GPUs is up; put manifests of pods into {}",
        node.cards.len(),
        place::MANIFESTS
    ));
    say(
        "try: ostler devices; ctr containers ls; curl -s 127.0.0.1:10255/pods; exit to take it down",
    );
    Command::new("bash")
        .env("CONTAINERD_ADDRESS", place::CONTAINERD)
        .env("CONTAINERD_NAMESPACE", "k8s.io")
        .env("OSTLER_CONTROL_SOCKET", agent::control("first"))
        .env("OSTLER_SIM_NODE", place::DRIVER)
        .stdin(Stdio::inherit())
        .status()
        .await
        .context("cannot start bash")?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the names of our namespaces to a file, for the check at the end.
fn note_namespaces(work: &Path) -> Result<()> {
    let mut names = Vec::new();
    for kind in ["mnt", "pid", "net", "uts", "ipc", "cgroup"] {
        let name = fs_err::read_link(format!("/proc/self/ns/{kind}"))?;
        names.push(name.display().to_string());
    }
    Ok(fs_err::write(work.join(NAMESPACES), names.join("\n"))?)
}

/// Reaps orphans that have ended. A zombie that is there twice in a row has no other parent that
/// waits for it.
async fn reap() {
    let mut before = BTreeSet::new();
    loop {
        let now = process::zombies();
        for pid in now.intersection(&before) {
            process::collect(*pid);
        }
        before = now;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}
