//! `ostler probe check`: runs a probe as the agent does, and checks its output.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use anyhow::Context as _;
use config::Period;
use model::NodePattern;
use probe::{
    check::{Complaint, LineChecker},
    protocol::{self, Configure},
};
use serde_json::json;
use tokio::time::Instant;

/// Time that a probe may take to end after the end of its input.
const FAREWELL: Duration = Duration::from_secs(3);

/// Number of lines that are read before they are checked.
const READ_AHEAD: usize = 64;

/// Run a probe program for a while, as the agent would, and check its output.
///
/// The exit status is 1 if the agent would refuse a line.
#[derive(Debug, clap::Args)]
pub(super) struct ProbeCheckArgs {
    /// Duration of the run
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    time: Period,

    /// Device nodes that the probe may name, as `allow` in the config; may be given several times
    #[arg(long, value_name = "PATTERN")]
    allow: Vec<NodePattern>,

    /// A setting for the probe, as `settings` in the config; may be given several times
    #[arg(long = "setting", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,

    /// Show every line
    #[arg(short, long)]
    verbose: bool,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

// === impl ProbeCheckArgs ===

impl ProbeCheckArgs {
    pub(super) fn check_probe(self) -> anyhow::Result<ExitCode> {
        let allow = (!self.allow.is_empty()).then(|| self.allow.clone());
        let mut checker = LineChecker::new(allow);
        let mut child = self.spawn_probe()?;
        let input = child.stdin.take().context("the probe has no input")?;
        let output = child.stdout.take().context("the probe has no output")?;
        let mut complaints = self.check_lines(&mut checker, input, &read_lines(output));
        complaints.extend(checker.check_end());
        complaints.extend(farewell(&mut child)?);
        for complaint in complaints.iter().filter(|complaint| complaint.line == 0) {
            anstream::println!("{complaint}");
        }
        let errors = complaints.iter().filter(|complaint| complaint.is_error);
        let errors = errors.count();
        let warnings = complaints.len() - errors;
        let summary = checker.summarize_lines();
        anstream::println!("{summary}; {errors} errors, {warnings} warnings");
        Ok(ExitCode::from(u8::from(errors > 0)))
    }

    /// Runs the probe for its time, and checks each line. Prints complaints as they come.
    fn check_lines(
        &self,
        checker: &mut LineChecker,
        mut input: ChildStdin,
        lines: &mpsc::Receiver<Vec<u8>>,
    ) -> Vec<Complaint> {
        let began = Instant::now();
        let end = began + self.time.as_duration();
        // A failed write is no complaint: a probe that reads no settings shows that in its output.
        let _ = input.write_all(self.first_command().line().as_bytes());
        let mut complaints = Vec::new();
        let mut refresh = Some(began + self.time.as_duration() / 2);
        loop {
            // Also while one line follows the other: the time for which it runs is over then, too.
            if Instant::now() >= end {
                return complaints;
            }
            let until = refresh.unwrap_or(end);
            match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    if self.verbose {
                        anstream::println!("{}", String::from_utf8_lossy(&line));
                    }
                    for complaint in checker.check_line(&line, began.elapsed()) {
                        anstream::println!("{complaint}");
                        complaints.push(complaint);
                    }
                    if checker.is_flooded() {
                        return complaints;
                    }
                }
                Err(RecvTimeoutError::Timeout) if refresh.take().is_some() => {
                    checker.refreshed();
                    let _ = input.write_all(protocol::Command::Refresh.line().as_bytes());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let remedy = "go on until the input ends, whatever happens to the hardware";
                    complaints.push(probe_complaint("the probe ended by itself", remedy));
                    return complaints;
                }
            }
        }
    }

    /// Makes the first line of the probe's input, with its settings.
    fn first_command(&self) -> protocol::Command {
        let settings: BTreeMap<_, _> = self.settings.iter().cloned().collect();
        protocol::Command::Configure(Box::new(Configure {
            period: Duration::from_secs(1),
            backend: json!(settings),
            ..Configure::default()
        }))
    }

    /// Starts the probe with the same rights as under the agent.
    fn spawn_probe(&self) -> anyhow::Result<Child> {
        Command::new("/proc/self/exe")
            .args(["probe", "exec", "--"])
            .args(&self.command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the probe")
    }
}

/// Reads lines on a thread of its own: a blocking read cannot be cancelled. The thread ends with the
/// probe.
fn read_lines(output: ChildStdout) -> mpsc::Receiver<Vec<u8>> {
    // A probe that writes faster than its lines are judged has to wait, as it has for the agent.
    let (sender, lines) = mpsc::sync_channel(READ_AHEAD);
    thread::spawn(move || {
        let lines = BufReader::new(output).split(b'\n');
        // The receiver is gone when the time is over.
        let _ = lines
            .map_while(Result::ok)
            .try_for_each(|line| sender.send(line));
    });
    lines
}

/// Waits until the probe has ended. Kills it after 3 s, which is a complaint.
fn farewell(child: &mut Child) -> anyhow::Result<Option<Complaint>> {
    let deadline = Instant::now() + FAREWELL;
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            let fault = "it did not exit within 3 s when its input ended";
            return Ok(Some(probe_complaint(
                fault,
                "exit at the end of the standard input",
            )));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(None)
}

/// Makes a complaint about the probe as a whole. Such a one has line number 0.
fn probe_complaint(fault: &str, remedy: &str) -> Complaint {
    Complaint {
        line: 0,
        is_error: true,
        fault: fault.to_owned(),
        remedy: remedy.to_owned(),
    }
}

/// Parses `NAME=VALUE`.
fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
