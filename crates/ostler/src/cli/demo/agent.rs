//! The real agent as a child process, and what it says over its control socket.

use std::{
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use api::Devices;
use rustix::process::{Pid, Signal, kill_process};
use sim::Node;
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

/// The agent ends within two seconds of SIGTERM; this is when we stop believing that.
const FAREWELL: Duration = Duration::from_secs(5);

/// The pause between two questions to the agent.
const PAUSE: Duration = Duration::from_millis(10);

/// How many lines of the log are shown when something went wrong.
const LOG_LINES: usize = 8;

/// The running agent.
#[derive(Debug)]
pub(super) struct Agent {
    /// When it was started.
    pub(super) started: Instant,
    /// Where commands reach it.
    pub(super) control: PathBuf,
    /// Its log.
    pub(super) log: PathBuf,
    child: Child,
}

/// The files that an agent is given.
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
    /// Starts the program that runs now once more, as the agent.
    pub(super) fn start(files: Files<'_>) -> anyhow::Result<Self> {
        let log = fs_err::File::create(&files.log)?;
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("ostler")
            .args(["--log", "info", "--log-format", "text", "run"])
            .arg("--config")
            .arg(files.config)
            .arg("--kubelet-dir")
            .arg(files.kubelet)
            .arg("--pod-resources-socket")
            .arg(files.pod_resources)
            .arg("--host-root")
            .arg(files.node.root())
            .arg("--nvml-library")
            .arg(files.node.library())
            .arg("--control-socket")
            .arg(&files.control)
            // The host's own specs are none of a demonstration's business.
            .arg("--cdi-dir")
            .arg(files.node.dir().join("cdi"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(log.into_file()))
            // Ctrl-C is for us; we end the agent ourselves.
            .process_group(0)
            .kill_on_drop(true);
        // What a person has set for an agent of their own is not for this one.
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

    /// All that it knows of the devices.
    pub(super) async fn devices(&self) -> anyhow::Result<Devices> {
        let body = web::client::get(&self.control, api::DEVICES).await?;
        serde_json::from_slice(&body).context("the agent's answer cannot be read")
    }

    /// Asks until the answer is as it should be.
    pub(super) async fn until(
        &mut self,
        wanted: &str,
        limit: Duration,
        condition: impl Fn(&Devices) -> bool,
    ) -> anyhow::Result<Devices> {
        let end = Instant::now() + limit;
        loop {
            let answer = self.devices().await;
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

    /// Its exit status, if it has ended.
    pub(super) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        self.child.try_wait().context("cannot watch the agent")
    }

    /// Ends it as Kubernetes does, and harder if that does not help.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
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

    /// Where its log is, and its last lines.
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
