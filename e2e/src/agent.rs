//! The agent as a plain process of the node.

use anyhow::{Context as _, Result};
use tokio::process::Command;

use crate::{place, process::Process};

/// An agent that runs.
#[derive(Debug)]
pub struct Agent {
    process: Process,
}

// === impl Agent ===

impl Agent {
    /// Starts an agent; each instance that runs at the same time has a name of its own.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(instance: &str) -> Result<Self> {
        let driver = sim::Node::open(place::DRIVER.as_ref())?;
        let mut command = Command::new(place::program("ostler"));
        command
            .arg("run")
            .args(["--kubelet-dir", place::DEVICE_PLUGINS])
            .args(["--pod-resources-socket", place::POD_RESOURCES])
            .arg("--host-root")
            .arg(driver.root())
            .arg("--nvml-library")
            .arg(driver.library())
            .args(["--control-socket", &control(instance)]);
        let process = Process::start("agent", &mut command)?;
        Ok(Self { process })
    }

    /// Fails if it has ended.
    ///
    /// # Errors
    /// With its status.
    pub fn check(&mut self) -> Result<()> {
        self.process.check()
    }

    /// Asks it to end, and fails if it does not end well.
    ///
    /// # Errors
    /// With its status.
    pub async fn stop(self) -> Result<()> {
        let status = self.process.stop().await?;
        anyhow::ensure!(status.success(), "the agent ended with {status}");
        Ok(())
    }

    /// Kills it.
    ///
    /// # Errors
    /// If it does not end.
    pub async fn kill(self) -> Result<()> {
        self.process.kill().await.map(drop)
    }
}

/// Our sockets in the device plugin folder.
///
/// # Errors
/// If the folder cannot be read.
pub fn sockets() -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(place::DEVICE_PLUGINS)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != ::kubelet::api::KUBELET_SOCKET && name.ends_with(".sock") {
            found.push(name);
        }
    }
    Ok(found)
}

/// What the agent has written to its log since it was `from` bytes long.
///
/// # Errors
/// If there is no log.
pub fn log(from: usize) -> Result<String> {
    let text = fs_err::read_to_string(place::log("agent"))?;
    let text = text.get(from..).context("the agent's log has shrunk")?;
    Ok(text.to_owned())
}

fn control(instance: &str) -> String {
    format!("/run/ostler/{instance}.sock")
}
