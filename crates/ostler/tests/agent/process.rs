//! The agent as a process, and reads of /proc.

use std::{
    fmt::Debug,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use api::DevicePage;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use web::client;

use crate::rig::{LONG, Rig, eventually};

/// Pages of the control socket.
const DEVICES: &str = "/v1/devices";
const STATUS: &str = "/v1/status";

/// Interval of checks for a state.
const STEP: Duration = Duration::from_millis(20);

/// Log filter with everything of the agent's own crates.
pub(crate) const LOG: &str = "info,ostler=debug,probe=debug,kubelet=debug,web=debug";

/// Running agent. Its log is printed if a test fails. A drop kills the process.
pub(crate) struct Agent {
    child: Child,
    pub(crate) control: PathBuf,
    log: PathBuf,
}

// === impl Agent ===

impl Agent {
    /// Starts `ostler run` with the config file `<name>.yaml` of the node's folder.
    pub(crate) fn start(rig: &Rig, name: &str) -> Self {
        Self::spawn(rig, name, ostler())
    }

    /// Starts a command that is, or becomes, `ostler`, with the flags for the node.
    pub(crate) fn spawn(rig: &Rig, name: &str, mut command: Command) -> Self {
        let flags: [(&str, PathBuf); 6] = [
            ("--config", rig.path(&format!("{name}.yaml"))),
            ("--kubelet-dir", rig.kubelet_dir()),
            ("--pod-resources-socket", rig.pod_resources()),
            ("--host-root", rig.node.host_root()),
            ("--nvml-library", rig.node.driver_library()),
            ("--control-socket", control(rig, name)),
        ];
        command.args(["run", "--log", LOG]);
        for (flag, path) in flags {
            command.arg(flag).arg(path);
        }
        Self::launch(rig, name, command)
    }

    /// Starts a command that is, or becomes, the agent. It has its control socket from its own flags
    /// or variables.
    pub(crate) fn launch(rig: &Rig, name: &str, mut command: Command) -> Self {
        let log = rig.path(&format!("{name}.log"));
        let file = fs_err::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        // A process group of its own, so that a test can signal the group without signalling itself.
        let child = command
            .env("OSTLER_CDI_DIR", rig.cdi_dir())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file.into_parts().0)
            .spawn()
            .unwrap();
        Self {
            child,
            control: control(rig, name),
            log,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Log of the agent so far.
    pub(crate) fn log(&self) -> String {
        fs_err::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until the log has a text, and returns the log. A thread of its own writes the log, so
    /// that a line may come late.
    pub(crate) async fn logged(&self, text: &str) -> String {
        eventually(&format!("the log has `{text}`"), || {
            self.log().contains(text)
        })
        .await;
        self.log()
    }

    /// Devices page of the agent, if it answers.
    pub(crate) async fn devices(&self) -> Option<DevicePage> {
        self.page(DEVICES).await
    }

    /// Status page of the agent, if it answers.
    pub(crate) async fn status(&self) -> Option<Value> {
        self.page(STATUS).await
    }

    /// Waits until `wanted` holds for the devices page.
    pub(crate) async fn shows(
        &self,
        what: &str,
        wanted: impl Fn(&DevicePage) -> bool,
    ) -> DevicePage {
        self.wait(DEVICES, what, wanted).await
    }

    /// Waits until `wanted` holds for the status page.
    pub(crate) async fn says(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.wait(STATUS, what, wanted).await
    }

    /// Page of the control socket, if the agent answers.
    async fn page<T: DeserializeOwned>(&self, page: &str) -> Option<T> {
        let body = client::read_page(&self.control, page).await.ok()?;
        Some(serde_json::from_slice(&body).unwrap())
    }

    /// Reads a page until `wanted` holds for it.
    async fn wait<T: DeserializeOwned + Debug>(
        &self,
        page: &str,
        what: &str,
        wanted: impl Fn(&T) -> bool,
    ) -> T {
        let begun = Instant::now();
        loop {
            let seen = self.page(page).await;
            match seen {
                Some(seen) if wanted(&seen) => return seen,
                _ => {}
            }
            assert!(
                begun.elapsed() < LONG,
                "not within {LONG:?}: {what}; {seen:#?}"
            );
            sleep(STEP).await;
        }
    }

    /// Pids of the agent's probes.
    pub(crate) fn probes(&self) -> Vec<u32> {
        let mut children = self.children();
        children.retain(|pid| is_probe(*pid));
        children
    }

    /// Pids of the agent's children.
    pub(crate) fn children(&self) -> Vec<u32> {
        let pids = processes().into_iter();
        pids.filter(|pid| parent(*pid) == Some(self.pid()))
            .collect()
    }

    /// Kills the agent's probes, as the kernel's OOM killer may do.
    pub(crate) fn kill_probes(&self) {
        for pid in self.probes() {
            signal(pid, Signal::KILL);
        }
    }

    pub(crate) fn signal(&self, name: Signal) {
        signal(self.pid(), name);
    }

    /// Waits until the agent has ended.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                begun.elapsed() < LONG,
                "the agent does not end within {LONG:?}"
            );
            sleep(STEP / 4).await;
        }
    }

    /// Stops the agent with SIGTERM, and checks that it ends with status 0 and in time.
    pub(crate) async fn stop(&mut self) {
        self.ends_well(Signal::TERM).await;
    }

    /// Sends the agent's process group a signal, and checks that the agent ends with status 0 and in
    /// time. `bench` measures the time.
    pub(crate) async fn ends_well(&mut self, name: Signal) {
        kill_process_group(raw(self.pid()), name).unwrap();
        let status = self.ended().await;
        assert!(status.success(), "the agent ended with {status}");
        let log = self.log();
        assert!(!log.contains("did not end in time"), "{log}");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            #[expect(
                clippy::print_stderr,
                reason = "a test has failed and a person wants to know"
            )]
            {
                eprintln!("--- {}\n{log}---", self.log.display());
            }
        }
    }
}

/// Control socket of the agent with this name.
pub(crate) fn control(rig: &Rig, name: &str) -> PathBuf {
    rig.path(&format!("{name}.sock"))
}

/// Command for the program, without the variables of other agents.
pub(crate) fn ostler() -> Command {
    isolated(Command::new(env!("CARGO_BIN_EXE_ostler")))
}

/// Removes the variables of other agents from a command.
pub(crate) fn isolated(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("OSTLER_") {
            command.env_remove(name);
        }
    }
    command
}

/// Sends a signal. A process that has ended already is no error.
pub(crate) fn signal(pid: u32, name: Signal) {
    let _ = kill_process(raw(pid), name);
}

/// Converts a process id to rustix's type.
fn raw(pid: u32) -> Pid {
    Pid::from_raw(pid.cast_signed()).unwrap()
}

/// True if a process is a probe that has not ended. A zombie has no command line (proc(5)).
pub(crate) fn is_probe(pid: u32) -> bool {
    words(pid, "cmdline")
        .get(1)
        .is_some_and(|word| word == "probe")
}

/// Words of a process's file in /proc: its arguments (`cmdline`) or its environment (`environ`).
pub(crate) fn words(pid: u32, file: &str) -> Vec<String> {
    let text =
        fs_err::read(Path::new("/proc").join(pid.to_string()).join(file)).unwrap_or_default();
    let words = text
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty());
    words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// Parent of a process; `None` if there is no such process.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

fn processes() -> Vec<u32> {
    let entries = fs_err::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}
