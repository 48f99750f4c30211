//! The half outside the namespaces. It creates the work folder and the cgroup, starts the other
//! half, and removes everything at the end.

use std::{
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{ExitCode, ExitStatus, Stdio},
};

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use tokio::{
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
};

use crate::{inside::Mode, place, say::say};

mod cgroup;
mod left;

use cgroup::Cgroups;

/// Programs of containerd that the node needs.
const CONTAINERD: [&str; 3] = ["containerd", "containerd-shim-runc-v2", "ctr"];

/// Programs and options of a run.
#[derive(Debug)]
pub struct Plan {
    /// Kubelet program.
    pub kubelet: PathBuf,
    /// Folder with containerd, its shim and ctr.
    pub containerd: PathBuf,
    /// Agent program.
    pub agent: PathBuf,
    /// Substring of test names; `None` runs all tests.
    pub only: Option<String>,
    /// True if the logs are kept after success, too.
    pub keep: bool,
    /// Work to do on the node.
    pub mode: Mode,
}

/// End of the inner half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Status(ExitStatus),
    Interrupted,
}

/// Runs the plan and cleans up.
///
/// # Errors
/// If a requirement is missing, or something was left behind.
pub async fn run(plan: Plan) -> Result<ExitCode> {
    if !rustix::process::geteuid().is_root() {
        bail!("the tests start a kubelet and containers, so they need root: run them with sudo");
    }
    let folder = tempfile::Builder::new()
        .prefix("ostler-e2e.")
        .disable_cleanup(true)
        .tempdir()?;
    let work = fs_err::canonicalize(folder.path())?;
    let end = work_in(&work, &plan).await;
    let passed = matches!(&end, Ok(End::Status(status)) if status.success());
    let is_fine = passed || matches!(&end, Ok(End::Interrupted));
    let swept = sweep(&work, is_fine && !plan.keep).await;
    let end = end?;
    swept?;
    Ok(match end {
        End::Interrupted => ExitCode::from(130),
        End::Status(_) if passed => ExitCode::SUCCESS,
        End::Status(_) => ExitCode::FAILURE,
    })
}

/// Runs the plan in an existing work folder.
async fn work_in(work: &Path, plan: &Plan) -> Result<End> {
    say(format_args!(
        "logs: {} (kept if a test fails)",
        work.join("logs").display()
    ));
    install(work, plan)?;
    Cgroups::of(work)?.create()?;
    watch(start(work, plan)?).await
}

/// Copies the programs to the folder where the node finds them.
fn install(work: &Path, plan: &Plan) -> Result<()> {
    let programs = work
        .join("root")
        .join(place::PROGRAMS.trim_start_matches('/'));
    fs_err::create_dir_all(&programs)?;
    fs_err::create_dir_all(work.join("logs"))?;
    let parts = "e2e/run parts";
    copy(&plan.kubelet, &programs.join("kubelet"), parts)?;
    for name in CONTAINERD {
        copy(&plan.containerd.join(name), &programs.join(name), parts)?;
    }
    let build = "cargo build --release -p ostler -p e2e";
    copy(&plan.agent, &programs.join("ostler"), build)?;
    let own = std::env::current_exe()?;
    copy(&own, &programs.join("e2e"), build)?;
    for program in ["witness", "runtime"] {
        copy(&own.with_file_name(program), &programs.join(program), build)?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path, remedy: &str) -> Result<()> {
    fs_err::copy(from, to).with_context(|| format!("make it with `{remedy}`"))?;
    Ok(())
}

/// Starts the chain into the namespaces: join the cgroup, create a cgroup namespace, leave its top,
/// create all other namespaces, run the inner half.
fn start(work: &Path, plan: &Plan) -> Result<Child> {
    let own = std::env::current_exe()?.display().to_string();
    let id = name(work);
    let inner = format!("{}/e2e", place::PROGRAMS);
    let inner = work.join("root").join(inner.trim_start_matches('/'));
    let mut command = Command::new(&own);
    command
        .args(["enter", &id, "--", "unshare", "--cgroup", "--"])
        .args([&own, "settle", &id, "--", "unshare"])
        .args(["--mount", "--pid", "--net", "--uts", "--ipc", "--fork"])
        .args(["--kill-child=KILL", "--"])
        .arg(inner)
        .arg("inside")
        .arg(work)
        .args(["--", "node", &plan.mode.to_string()]);
    if let Some(only) = &plan.only {
        command.args(["--only", only]);
    }
    if plan.mode != Mode::Shell {
        // Only this process gets Ctrl-C, so that it controls the order of the shutdown.
        command.stdin(Stdio::null()).process_group(0);
    }
    command.spawn().context("cannot start the inner half")
}

/// Waits for the inner half, or stops it on a signal.
async fn watch(mut child: Child) -> Result<End> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let ended = tokio::select! {
        status = child.wait() => return Ok(End::Status(status?)),
        _ = interrupt.recv() => "interrupted",
        _ = terminate.recv() => "told to end",
        _ = hangup.recv() => "the terminal is gone",
    };
    say(format_args!("{ended}: taking the node down"));
    child.start_kill()?;
    child.wait().await?;
    Ok(End::Interrupted)
}

/// Removes everything of the run, and fails if something stays.
async fn sweep(work: &Path, everything: bool) -> Result<()> {
    let cgroups = Cgroups::of(work)?;
    let left = left::check(work, &cgroups).await;
    fs_err::remove_dir_all(work.join("root")).or_else(missing_is_fine)?;
    if everything {
        fs_err::remove_dir_all(work)?;
    } else {
        say(format_args!("logs: {}", work.join("logs").display()));
    }
    left
}

fn missing_is_fine(error: std::io::Error) -> std::io::Result<()> {
    match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

/// Name of a run: the name of its work folder.
fn name(work: &Path) -> String {
    let name = work.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Joins the cgroup of a run and executes the next program, which is killed when its parent ends.
///
/// # Errors
/// If the cgroup cannot be joined or the program cannot be started.
pub fn enter(id: &str, then: &[String]) -> Result<ExitCode> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    Cgroups::named(id)?.join()?;
    become_program(then)
}

/// Leaves the top of the run's cgroup and executes the next program. Version 2 allows no process in
/// a cgroup whose controllers its children use.
///
/// # Errors
/// If the cgroup cannot be joined or the program cannot be started.
pub fn settle(id: &str, then: &[String]) -> Result<ExitCode> {
    Cgroups::named(id)?.settle()?;
    become_program(then)
}

fn become_program(words: &[String]) -> Result<ExitCode> {
    let (program, args) = words.split_first().context("no program to start")?;
    let error = std::process::Command::new(program).args(args).exec();
    Err(error).with_context(|| format!("cannot start {program} (Debian package util-linux)"))
}
