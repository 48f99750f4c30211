//! The probe as a process: the test program started again.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt as _,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        mpsc::{self, Receiver},
    },
    thread,
    time::Duration,
};

use config::NvidiaProbe;
use nvidia_probe::NvmlBackend;
use probe::{
    child::{self, ProbeSettings},
    protocol::{Beat, Checkup, Command as Line, Configure, Message, Report, Scope},
};
use rustix::process::{Pid, Signal, kill_process};

use crate::node::{Rig, wait_for};

/// Variable that makes the program the probe; its value is the folder of the node.
pub(crate) const NODE: &str = "PROBE_TEST_NODE";
/// Variable that makes the program read its settings from standard input, as under the agent.
pub(crate) const SUPERVISED: &str = "PROBE_TEST_SUPERVISED";
/// Variable with the time between two reads of all links, in milliseconds.
const LINKS: &str = "PROBE_TEST_LINKS";

const DEADLINE: Duration = Duration::from_secs(60);

/// Caller of the probe.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Supervised,
    Person,
    /// The agent, with the library left to the loader.
    ByName,
}

/// Running probe process.
pub(crate) struct Process {
    child: Child,
    lines: Option<Receiver<Message>>,
}

/// Runs the probe and ends the process, if this process was started as one.
#[expect(
    clippy::exit,
    reason = "the harness would write more lines, and fail where nobody reads"
)]
pub(crate) fn run_if_asked() {
    let Some(folder) = std::env::var_os(NODE) else {
        return;
    };
    let supervised = std::env::var_os(SUPERVISED).is_some();
    let configure = match supervised {
        true => child::read_settings().unwrap(),
        false => of_person(&sim::Node::open_node(folder.as_ref()).unwrap()),
    };
    let calls = Arc::default();
    let section = configure.parse_section().unwrap();
    let backend = NvmlBackend::new(&configure, section, Arc::clone(&calls));
    let usual = ProbeSettings::default();
    let links = std::env::var(LINKS).map(|text| text.parse().unwrap());
    let settings = ProbeSettings {
        configure,
        links_period: links.map_or(usual.links_period, Duration::from_millis),
        supervised,
        ..usual
    };
    child::run_probe(&settings, backend, calls).unwrap();
    std::process::exit(0);
}

/// Returns the settings that a person's flags would give.
fn of_person(node: &sim::Node) -> Configure {
    let section = NvidiaProbe {
        nvml_library: Some(node.driver_library()),
        ..NvidiaProbe::default()
    };
    Configure {
        host_root: node.host_root(),
        period: Duration::from_secs(1),
        backend: section.to_value(),
        ..Configure::default()
    }
}

impl Process {
    pub(crate) fn start(rig: &Rig, kind: Kind) -> Self {
        Self::start_with(rig, kind, |_| ())
    }

    /// Starts the probe with changed settings.
    pub(crate) fn start_with(rig: &Rig, kind: Kind, change: impl FnOnce(&mut Configure)) -> Self {
        Self::launch(rig, kind, change, &[])
    }

    /// Starts the probe with another time between two reads of all links.
    pub(crate) fn start_asking_for_links(rig: &Rig, millis: &str) -> Self {
        Self::launch(rig, Kind::Supervised, |_| (), &[(LINKS, millis)])
    }

    fn launch(
        rig: &Rig,
        kind: Kind,
        change: impl FnOnce(&mut Configure),
        more: &[(&str, &str)],
    ) -> Self {
        let mut configure = rig.configure(Scope::All);
        configure.period = Duration::from_secs(1);
        change(&mut configure);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "probe_process",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(NODE, rig.node.node_dir())
            .envs(more.iter().copied())
            // As the agent does, so that processes that the probe leaves behind can be found by
            // their group.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if kind != Kind::Person {
            command.env(SUPERVISED, "1");
        }
        if kind == Kind::ByName {
            command.env("LD_LIBRARY_PATH", rig.node.node_dir());
            configure.backend = NvidiaProbe::default().to_value();
        }
        let mut child = command.spawn().unwrap();
        if kind != Kind::Person {
            let line = Line::Configure(Box::new(configure)).line();
            let input = child.stdin.as_mut().unwrap();
            input.write_all(line.as_bytes()).unwrap();
        }
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::sync_channel(4);
        thread::spawn(move || {
            // The test harness writes lines of its own around the probe's, on the same stream.
            for line in output.lines().map_while(Result::ok) {
                let Some(start) = line.find('{') else {
                    continue;
                };
                let message = Message::parse_line(&line[start..]).unwrap().unwrap();
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            lines: Some(lines),
        }
    }

    /// Returns the next message.
    pub(crate) fn next(&mut self) -> Message {
        let lines = self.lines.as_ref().unwrap();
        lines
            .recv_timeout(DEADLINE)
            .expect("the probe says nothing")
    }

    /// Returns the first message that is wanted.
    pub(crate) fn wait<T>(&mut self, mut wanted: impl FnMut(&Message) -> Option<T>) -> T {
        wait_for(|| wanted(&self.next()))
    }

    /// Returns the next report.
    pub(crate) fn report(&mut self) -> Report {
        self.wait(|message| match message {
            Message::Report(report) => Some(Report::clone(report)),
            _ => None,
        })
    }

    /// Returns the next beat.
    pub(crate) fn beat(&mut self) -> Beat {
        self.wait(|message| match message {
            Message::Beat(beat) => Some(beat.clone()),
            _ => None,
        })
    }

    /// Returns the next check-up.
    pub(crate) fn checkup(&mut self) -> Checkup {
        self.wait(|message| match message {
            Message::Checkup(checkup) => Some(checkup.clone()),
            _ => None,
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn command(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
    }

    /// Closes the probe's standard input.
    pub(crate) fn close(&mut self) {
        self.child.stdin = None;
    }

    /// Stops reading. The pipe closes with the next message that arrives.
    pub(crate) fn deafen(&mut self) {
        self.lines = None;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the probe has ended.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut open = self.lines.take();
        wait_for(|| {
            // A full pipe must not keep the probe from ending.
            if let Some(lines) = &open
                && lines.recv_timeout(Duration::from_millis(1))
                    == Err(mpsc::RecvTimeoutError::Disconnected)
            {
                open = None;
            }
            self.child.try_wait().unwrap()
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
