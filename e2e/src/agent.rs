//! Agent as a plain process of the node.

use std::path::Path;

use anyhow::Result;
use tokio::process::Command;

use crate::{
    place,
    process::{self, Id, Process},
};

/// Config of nearly all tests: a recovered card is offered again soon, however often it broke. By
/// default the hold-down is half a minute and doubles with each recurrence.
const USUAL: &str = "probe: {period: 1s}
health: {passes: 2, holdDown: 1s, holdDownLimit: 1s}
";

/// A running agent.
#[derive(Debug)]
pub struct Agent {
    process: Process,
    usual: bool,
}

// === impl Agent ===

impl Agent {
    /// Starts an agent. Each instance that runs at the same time has a name of its own.
    ///
    /// # Errors
    /// If the agent cannot be started.
    pub fn start(instance: &str) -> Result<Self> {
        let config = format!("{}/usual.yaml", place::CONFIG);
        fs_err::write(&config, USUAL)?;
        let driver = sim::Node::open_node(place::DRIVER.as_ref())?;
        let mut command = command(instance, &driver.host_root())?;
        command.args(["--config", &config]);
        let process = Process::start("agent", &mut command)?;
        let usual = true;
        Ok(Self { process, usual })
    }

    /// Starts an agent with a config file.
    ///
    /// # Errors
    /// If the agent cannot be started.
    pub fn configured(config: &str) -> Result<Self> {
        let driver = sim::Node::open_node(place::DRIVER.as_ref())?;
        Self::with(config, &driver.host_root())
    }

    /// Starts an agent with a config file, the real device nodes and the container runtime's
    /// config.
    ///
    /// # Errors
    /// If the agent cannot be started.
    pub fn on_host(config: &str) -> Result<Self> {
        make_host()?;
        Self::with(config, place::HOST.as_ref())
    }

    fn with(config: &str, root: &Path) -> Result<Self> {
        configure(config)?;
        let mut command = command("first", root)?;
        command.args(["--config", &file()]);
        let process = Process::start("agent", &mut command)?;
        let usual = false;
        Ok(Self { process, usual })
    }

    /// Starts an agent in place of NVIDIA's plugin: under its name, with its config file.
    ///
    /// # Errors
    /// If the agent cannot be started.
    pub fn nvidia(config: &str) -> Result<Self> {
        configure(config)?;
        make_host()?;
        let driver = sim::Node::open_node(place::DRIVER.as_ref())?;
        let link = format!("{}/nvidia-device-plugin", place::CONFIG);
        if !fs_err::exists(&link)? {
            fs_err::os::unix::fs::symlink(place::program("ostler"), &link)?;
        }
        let mut command = Command::new(link);
        command
            .args(["--config-file", &file()])
            .env("OSTLER_HOST_ROOT", place::HOST)
            .env("OSTLER_NVML_LIBRARY", driver.driver_library())
            .env("OSTLER_CONTROL_SOCKET", control("first"));
        let process = Process::start("agent", &mut command)?;
        let usual = false;
        Ok(Self { process, usual })
    }

    /// True if the agent was started with the config of nearly all tests.
    pub fn is_usual(&self) -> bool {
        self.usual
    }

    /// Process id while the agent runs.
    pub fn pid(&self) -> Option<i32> {
        self.process.pid()
    }

    /// Fails if the agent has ended.
    ///
    /// # Errors
    /// With the exit status.
    pub fn check(&mut self) -> Result<()> {
        self.process.check()
    }

    /// Stops the agent, and fails if the exit status is not success.
    ///
    /// # Errors
    /// With the exit status.
    pub async fn stop(self) -> Result<()> {
        let status = self.process.stop().await?;
        anyhow::ensure!(status.success(), "the agent ended with {status}");
        Ok(())
    }

    /// Kills the agent.
    ///
    /// # Errors
    /// If the agent does not end.
    pub async fn kill(self) -> Result<()> {
        self.process.kill().await.map(drop)
    }
}

/// Replaces the config file atomically, as the kubelet updates a ConfigMap. A running agent
/// notices.
///
/// # Errors
/// If the file cannot be written.
pub fn configure(config: &str) -> Result<()> {
    let draft = format!("{}/draft.yaml", place::CONFIG);
    fs_err::write(&draft, config)?;
    Ok(fs_err::rename(draft, file())?)
}

fn file() -> String {
    format!("{}/ostler.yaml", place::CONFIG)
}

/// Runs a command of the agent's program against the running agent. Returns its output.
///
/// # Errors
/// If the command fails; the message has its output.
pub async fn ask(words: &[&str]) -> Result<String> {
    let socket = control("first");
    let words = [words, &["--control-socket", &socket]].concat();
    process::run(&place::program("ostler"), &words).await
}

/// Creates the host root of [`Agent::on_host`]: the simulated driver's files, the real device
/// nodes, and the container runtime's config.
fn make_host() -> Result<()> {
    let driver = sim::Node::open_node(place::DRIVER.as_ref())?.host_root();
    let host = Path::new(place::HOST);
    fs_err::create_dir_all(host.join("etc/containerd"))?;
    let links = [
        ("dev", Path::new("/dev").to_owned()),
        ("proc", driver.join("proc")),
        ("sys", driver.join("sys")),
        (
            "etc/containerd/config.toml",
            place::CONTAINERD_CONFIG.into(),
        ),
    ];
    for (name, target) in links {
        if !fs_err::exists(host.join(name))? {
            fs_err::os::unix::fs::symlink(target, host.join(name))?;
        }
    }
    Ok(())
}

/// Command line of the agent on this node; `root` is the host root.
fn command(instance: &str, root: &Path) -> Result<Command> {
    let driver = sim::Node::open_node(place::DRIVER.as_ref())?;
    let mut command = Command::new(place::program("ostler"));
    command
        .arg("run")
        .args(["--kubelet-dir", place::DEVICE_PLUGINS])
        .args(["--pod-resources-socket", place::POD_RESOURCES])
        .arg("--host-root")
        .arg(root)
        .arg("--driver-path")
        .arg(driver.host_root())
        .arg("--nvml-library")
        .arg(driver.driver_library())
        .args(["--control-socket", &control(instance)]);
    Ok(command)
}

/// Sockets of the agent in the device plugin folder.
///
/// # Errors
/// If the folder cannot be read.
pub fn sockets() -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(place::DEVICE_PLUGINS)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != kubelet_api::KUBELET_SOCKET && name.ends_with(".sock") {
            found.push(name);
        }
    }
    Ok(found)
}

/// Processes of all agents: each agent and its probes.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn processes() -> Result<Vec<Id>> {
    process::find(|words| words.first().is_some_and(|word| word.contains("ostler")))
}

/// Path of an instance's control socket.
pub fn control(instance: &str) -> String {
    format!("{}/{instance}.sock", place::CONTROL)
}
