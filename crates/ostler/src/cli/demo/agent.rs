//! The real agent as a child process, with its answers on the control socket.

use std::{
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use api::DevicePage;
use rustix::process::{Pid, Signal, kill_process};
use sim::Node;
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

/// Time limit for the end of the agent, which takes 2 s at most. After that it is killed.
const FAREWELL: Duration = Duration::from_secs(5);

/// Pause between two requests to the agent.
const PAUSE: Duration = Duration::from_millis(10);

/// Number of lines of the log that an error shows.
const LOG_LINES: usize = 8;

/// The running agent.
#[derive(Debug)]
pub(super) struct Agent {
    /// Time of its start.
    pub(super) started: Instant,
    /// Path of its control socket.
    pub(super) control: PathBuf,
    /// Path of its log.
    pub(super) log: PathBuf,
    child: Child,
}

/// Files for an agent.
#[derive(Debug)]
pub(super) struct Files<'a> {
    pub(super) node: &'a Node,
    pub(super) kubelet: &'a Path,
    pub(super) pod_resources: &'a Path,
    pub(super) config: &'a Path,
    pub(super) control: PathBuf,
    pub(super) log: PathBuf,
}

// === impl Agent ===

impl Agent {
    /// Starts this program again, as the agent.
    pub(super) fn start(files: Files<'_>) -> anyhow::Result<Self> {
        let log = fs_err::File::create(&files.log)?;
        let mut command = Command::new("/proc/self/exe");
        command
            // `ps` shows this name instead of the link's.
            .arg0("ostler")
            .args(["--log", "info", "--log-format", "text", "run"])
            .arg("--config")
            .arg(files.config)
            .arg("--kubelet-dir")
            .arg(files.kubelet)
            .arg("--pod-resources-socket")
            .arg(files.pod_resources)
            .arg("--host-root")
            .arg(files.node.host_root())
            .arg("--nvml-library")
            .arg(files.node.driver_library())
            .arg("--control-socket")
            .arg(&files.control)
            // The demo must not write specs for the host's container runtime.
            .arg("--cdi-dir")
            .arg(files.node.node_dir().join("cdi"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(log.into_file()))
            // The terminal sends SIGINT to the whole foreground process group on Ctrl-C. In a group
            // of its own the agent gets none, and ends when the demo stops it.
            .process_group(0)
            // An error of a step must not leave the agent behind.
            .kill_on_drop(true);
        // Variables in the user's shell are for another agent.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("OSTLER_") {
                command.env_remove(name);
            }
        }
        let started = Instant::now();
        let child = command.spawn().context("cannot start the agent")?;
        Ok(Self {
            started,
            control: files.control,
            log: files.log,
            child,
        })
    }

    /// Reads the page of the devices.
    pub(super) async fn devices(&self) -> anyhow::Result<DevicePage> {
        let body = web::client::read_page(&self.control, api::DEVICES).await?;
        serde_json::from_slice(&body).context("the agent's answer cannot be read")
    }

    /// Reads the devices until `condition` holds for them.
    ///
    /// # Errors
    /// The agent has ended, or the condition does not hold within `limit`. `wanted` describes it in
    /// the error.
    pub(super) async fn until(
        &mut self,
        wanted: &str,
        limit: Duration,
        condition: impl Fn(&DevicePage) -> bool,
    ) -> anyhow::Result<DevicePage> {
        let end = Instant::now() + limit;
        loop {
            let answer = self.devices().await;
            // The end of the agent explains more than a request without an answer.
            if let Some(status) = self.ended()? {
                bail!("the agent ended with {status}");
            }
            match answer {
                Ok(snapshot) if condition(&snapshot) => return Ok(snapshot),
                answer if Instant::now() > end => {
                    let seconds = limit.as_secs();
                    let late = format!("it did not happen within {seconds} s: {wanted}");
                    return Err(answer.err().map_or_else(
                        || anyhow::anyhow!("{late}"),
                        |error| error.context(late.clone()),
                    ));
                }
                _ => sleep(PAUSE).await,
            }
        }
    }

    /// Exit status of the agent, if it has ended.
    pub(super) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        self.child.try_wait().context("cannot watch the agent")
    }

    /// Stops the agent as the kubelet stops a container: SIGTERM, then SIGKILL after 5 s.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        // `Child::id` is `None` after the child was reaped: no other process can get the signal.
        let pid = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM).context("cannot end the agent")?;
        }
        match timeout(FAREWELL, self.child.wait()).await {
            Ok(_) => Ok(()),
            Err(_) => self.child.kill().await.context("cannot end the agent"),
        }
    }

    /// Describes the log for an error: its path and its last lines.
    pub(super) fn log(&self) -> String {
        let text = fs_err::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n  ");
        format!(
            "the agent's log is {} and ends with:\n  {last}",
            self.log.display()
        )
    }
}
