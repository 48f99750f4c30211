//! containerd: its configuration, its start, and the end of all shims at a power cut.

use anyhow::Result;
use rustix::process::Signal;
use tokio::process::Command;

use crate::{
    image, place,
    process::{self, Process},
    wait,
};

/// Name of the shims in their command line.
const SHIM: &str = "containerd-shim-runc-v2";

/// Starts containerd and waits until it answers.
///
/// # Errors
/// If containerd does not start.
pub async fn start() -> Result<Process> {
    let file = place::CONTAINERD_CONFIG;
    fs_err::write(file, config())?;
    let mut command = Command::new(place::program("containerd"));
    command.args(["--config", file]);
    let mut process = Process::start("containerd", &mut command)?;
    let ctr = place::program("ctr");
    wait::until("containerd to answer", wait::LONG, async || {
        process.check()?;
        process::run(&ctr, &["-a", place::CONTAINERD, "version"]).await
    })
    .await?;
    Ok(process)
}

/// Kills all containers and shims at once, as a power cut does.
///
/// # Errors
/// If a process stays.
pub async fn kill_containers() -> Result<()> {
    let is_part = |words: &[String]| {
        let program = words.first().map(String::as_str).unwrap_or_default();
        program.ends_with(SHIM) || program.starts_with("/witness")
    };
    wait::until("all containers to end", wait::LONG, async || {
        let found = process::find(is_part)?;
        for id in &found {
            process::send(id.pid, Signal::KILL)?;
        }
        anyhow::ensure!(found.is_empty(), "{} processes are left", found.len());
        Ok(())
    })
    .await
}

fn config() -> String {
    format!(
        r#"version = 3
root = "{store}"
state = "{state}"

[grpc]
address = "{socket}"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{pause}"

[plugins."io.containerd.cri.v1.runtime"]
enable_cdi = true
cdi_spec_dirs = ["{cdi}"]
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
conf_dir = "/run/e2e/cni"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{runtime}"
SystemdCgroup = false
"#,
        store = place::CONTAINERD_STORE,
        state = place::CONTAINERD_STATE,
        socket = place::CONTAINERD,
        pause = image::PAUSE,
        cdi = place::CDI,
        runtime = place::program("runtime"),
    )
}
