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

use config::NvidiaBackend;
use probe::{
    child::{self, DeepCheck, Periods, Settings},
    nvidia::Nvidia,
    protocol::{Beat, Checkup, Configure, FileSearch, Message, Report, Scope},
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::node::{Rig, wait_for};

/// Tells the program that it is the probe, and where the node is.
pub(crate) const NODE: &str = "PROBE_TEST_NODE";
const SUPERVISED: &str = "PROBE_TEST_SUPERVISED";
const BY_NAME: &str = "PROBE_TEST_BY_NAME";
const NO_LINKS: &str = "PROBE_TEST_NO_LINKS";
/// The time between two questions for all links, in milliseconds.
pub(crate) const LINKS: &str = "PROBE_TEST_LINKS";
/// The cards to look at, as the agent's arguments say it.
pub(crate) const CARDS: &str = "PROBE_TEST_CARDS";
/// The period of the working tier in milliseconds.
pub(crate) const WORKING: &str = "PROBE_TEST_WORKING";
/// A shell script for deep checks.
pub(crate) const DEEP: &str = "PROBE_TEST_DEEP";

/// Says that the driver's files are wanted later.
pub(crate) const FILES: &str = "PROBE_TEST_FILES";

const DEADLINE: Duration = Duration::from_secs(60);

/// Who runs the probe.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Supervised,
    Person,
    /// The agent, and the loader has to find the library.
    ByName,
    /// The agent, which wants no links.
    NoLinks,
}

/// A running probe.
pub(crate) struct Process {
    child: Child,
    lines: Option<Receiver<Message>>,
}

/// Is the probe, if this process was started as one.
#[expect(
    clippy::exit,
    reason = "the harness would write more lines, and fail where nobody reads"
)]
pub(crate) fn run_if_asked() {
    let Some(folder) = std::env::var_os(NODE) else {
        return;
    };
    let node = sim::Node::open(folder.as_ref()).unwrap();
    let calls = Arc::default();
    let configure = Configure {
        host_root: node.root(),
        cards: scope(&std::env::var(CARDS).unwrap_or_default()),
        driver_files: match std::env::var_os(FILES) {
            Some(_) => FileSearch::Later,
            None => FileSearch::Never,
        },
        ..Configure::default()
    };
    let section = NvidiaBackend {
        nvml_library: std::env::var_os(BY_NAME).is_none().then(|| node.library()),
        ..NvidiaBackend::default()
    };
    let backend = Nvidia::new(&configure, section, Arc::clone(&calls));
    let millis = std::env::var(WORKING).map(|text| text.parse().unwrap());
    let settings = Settings {
        period: Duration::from_secs(1),
        checks: Periods {
            working: millis.map_or(Periods::default().working, Duration::from_millis),
            ..Periods::default()
        },
        deep: std::env::var(DEEP).ok().map(|script| DeepCheck {
            command: vec!["sh".to_owned(), "-c".to_owned(), script],
            period: Duration::from_millis(500),
            limit: Duration::from_secs(600),
            last_ago: Duration::ZERO,
        }),
        links: links(),
        supervised: std::env::var_os(SUPERVISED).is_some(),
        ..Settings::default()
    };
    child::run(&settings, backend, calls).unwrap();
    std::process::exit(0);
}

/// How often links are asked for.
fn links() -> Option<Duration> {
    let millis = std::env::var(LINKS).map(|text| text.parse().unwrap());
    let usual = Settings::default().links;
    let wanted = millis.map_or(usual, |millis| Some(Duration::from_millis(millis)));
    wanted.filter(|_| std::env::var_os(NO_LINKS).is_none())
}

/// The cards that the agent's arguments choose.
fn scope(args: &str) -> Scope {
    let words = || args.split_whitespace();
    if let Some(card) = words().find_map(|word| word.strip_prefix("--only=")) {
        return Scope::Only(card.parse().unwrap());
    }
    let skip = words().filter_map(|word| word.strip_prefix("--skip="));
    let skip: Vec<_> = skip.map(|card| card.parse().unwrap()).collect();
    match skip.is_empty() {
        true => Scope::All,
        false => Scope::Skip(skip),
    }
}

impl Process {
    pub(crate) fn start(rig: &Rig, kind: Kind) -> Self {
        Self::start_with(rig, kind, &[])
    }

    /// Starts it with more in its environment.
    pub(crate) fn start_with(rig: &Rig, kind: Kind, more: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "probe_process",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(NODE, rig.node.dir())
            .envs(more.iter().copied())
            // As the agent does: what it leaves behind can be found by its group.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if kind != Kind::Person {
            command.env(SUPERVISED, "1");
        }
        if kind == Kind::ByName {
            command
                .env(BY_NAME, "1")
                .env("LD_LIBRARY_PATH", rig.node.dir());
        }
        if kind == Kind::NoLinks {
            command.env(NO_LINKS, "1");
        }
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::sync_channel(4);
        thread::spawn(move || {
            // The test harness writes lines of its own around the probe's, on the same stream.
            for line in output.lines().map_while(Result::ok) {
                let Some(start) = line.find('{') else {
                    continue;
                };
                let message = Message::parse(&line[start..]).unwrap().unwrap();
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

    /// The next line.
    pub(crate) fn next(&mut self) -> Message {
        let lines = self.lines.as_ref().unwrap();
        lines
            .recv_timeout(DEADLINE)
            .expect("the probe says nothing")
    }

    /// The first line that is wanted.
    pub(crate) fn wait<T>(&mut self, wanted: impl Fn(&Message) -> Option<T>) -> T {
        wait_for(|| wanted(&self.next()))
    }

    /// The next report.
    pub(crate) fn report(&mut self) -> Report {
        self.wait(|message| match message {
            Message::Report(report) => Some(Report::clone(report)),
            _ => None,
        })
    }

    /// The next beat.
    pub(crate) fn beat(&mut self) -> Beat {
        self.wait(|message| match message {
            Message::Beat(beat) => Some(beat.clone()),
            _ => None,
        })
    }

    /// The next check-up.
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

    /// Ends its input.
    pub(crate) fn close(&mut self) {
        self.child.stdin = None;
    }

    /// Stops to read what it says; its output is closed with the next line that comes.
    pub(crate) fn deafen(&mut self) {
        self.lines = None;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Kills it with its group, as the agent does with a probe that it gives up.
    pub(crate) fn kill_group(&self) {
        kill_process_group(Pid::from_child(&self.child), Signal::KILL).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut open = self.lines.take();
        wait_for(|| {
            // What it still says must not keep it.
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
