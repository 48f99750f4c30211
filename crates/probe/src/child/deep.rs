//! Deep checks: a command of the user's, run for one idle card after another.
//!
//! The command belongs to the probe's process group, so that it ends with the probe, even with one
//! that is killed, and has no handle left of a card that was released. It is never waited for: a
//! process that sits in the kernel does not hear that it was killed.

use std::{
    collections::VecDeque,
    io::{self, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use model::{Deep as Outcome, DeviceId, Reading, Values};
use tokio::time::Instant;

use crate::protocol::Checkup;

mod tree;

/// How much of a command's output is kept: its end.
const TAIL: usize = 2048;

/// Time between two looks at a running command.
const STEP: Duration = Duration::from_millis(500);

const STACK: usize = 128 << 10;

/// What is run for deep checks, how often, and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeepCheck {
    /// The program and its arguments; the first is looked for in `PATH`.
    pub command: Vec<String>,
    /// Time between two runs for the same card.
    pub period: Duration,
    /// A run that takes longer is ended and has failed.
    pub limit: Duration,
}

/// A card for which the command is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patient {
    /// Its id.
    pub id: DeviceId,
    /// Where it sits, as an address or an index.
    pub at: String,
}

/// The deep checks of a probe.
#[derive(Debug)]
pub(super) struct Deep {
    check: DeepCheck,
    due: Instant,
    waiting: VecDeque<Patient>,
    running: Option<Run>,
    /// Commands that were killed and are not gone yet.
    leaving: Vec<Run>,
}

/// A command that runs.
#[derive(Debug)]
struct Run {
    patient: Patient,
    child: Child,
    since: Instant,
    output: Arc<Mutex<Vec<u8>>>,
    reader: Option<thread::JoinHandle<()>>,
}

// === impl Deep ===

impl Deep {
    /// The first round is due a period after `now`: a probe that is started again and again would
    /// otherwise keep the cards busy.
    pub(super) fn new(check: DeepCheck, now: Instant) -> Self {
        Self {
            due: now + check.period,
            check,
            waiting: VecDeque::new(),
            running: None,
            leaving: Vec::new(),
        }
    }

    /// When to come back.
    pub(super) fn next(&self, now: Instant) -> Instant {
        match self.running.is_some() || !self.waiting.is_empty() {
            true => now + STEP,
            false => self.due,
        }
    }

    /// Starts a round with `cards` if one is due and the last is over.
    pub(super) fn begin(&mut self, cards: impl FnOnce() -> Vec<Patient>, now: Instant) {
        if now >= self.due && self.running.is_none() && self.waiting.is_empty() {
            self.waiting = cards().into();
            self.due = now + self.check.period;
        }
    }

    /// Goes on with the round: what came of the command that ran. Starts the next one on a card for
    /// which `busy` has no reason against it.
    pub(super) fn go_on(
        &mut self,
        mut busy: impl FnMut(&DeviceId) -> Option<String>,
        now: Instant,
    ) -> Vec<Checkup> {
        let mut told = Vec::new();
        self.leaving.retain_mut(|run| !run.is_gone());
        if let Some(mut run) = self.running.take() {
            match run.ended(self.check.limit, now) {
                Some(outcome) => {
                    told.push(checkup(run.patient.clone(), outcome));
                    self.leaving.push(run);
                }
                None => {
                    self.running = Some(run);
                    return told;
                }
            }
        }
        while self.running.is_none()
            && let Some(patient) = self.waiting.pop_front()
        {
            let not_run = match self.hindrance(&patient.id).or_else(|| busy(&patient.id)) {
                Some(reason) => format!("not run: {reason}"),
                None => match Run::start(&self.check.command, &patient, now) {
                    Ok(run) => {
                        self.running = Some(run);
                        continue;
                    }
                    Err(error) => {
                        let program = self.check.command.first().map_or("", String::as_str);
                        format!("cannot run {program}: {error}")
                    }
                },
            };
            told.push(checkup(
                patient,
                Outcome {
                    passed: None,
                    output: not_run,
                },
            ));
        }
        told
    }

    /// A command that cannot be ended keeps the next one off its card.
    fn hindrance(&mut self, card: &DeviceId) -> Option<String> {
        let mut of_card = self.leaving.iter_mut().filter(|r| r.patient.id == *card);
        let still = of_card.find_map(|run| (!run.is_gone()).then(|| run.child.id()))?;
        Some(format!("process {still} was killed and has not ended"))
    }
}

// === impl Run ===

impl Run {
    fn start(command: &[String], patient: &Patient, now: Instant) -> io::Result<Self> {
        let [program, args @ ..] = command else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "no command is named",
            ));
        };
        let (reading, writing) = io::pipe()?;
        let child = Command::new(program)
            .args(args)
            .env("OSTLER_DEVICE", patient.id.as_str())
            .env("OSTLER_CARD", &patient.at)
            .env("CUDA_VISIBLE_DEVICES", patient.id.as_str())
            .stdin(Stdio::null())
            .stdout(writing.try_clone()?)
            .stderr(writing)
            .spawn()?;
        let output = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&output);
        let reader = thread::Builder::new()
            .name("deep-output".to_owned())
            .stack_size(STACK)
            .spawn(move || keep(reading, &kept))
            .ok();
        tracing::info!(card = patient.at, program, "a deep check begins");
        Ok(Self {
            patient: patient.clone(),
            child,
            since: now,
            output,
            reader,
        })
    }

    /// What came of it; `None` while it runs.
    fn ended(&mut self, limit: Duration, now: Instant) -> Option<Outcome> {
        let status = match self.child.try_wait() {
            Ok(None) if now.duration_since(self.since) < limit => return None,
            Ok(None) => {
                self.end();
                let limit = limit.as_secs();
                let why = format!("ended because it took longer than {limit} s");
                return Some(self.outcome(false, &why));
            }
            Ok(Some(status)) => status,
            Err(error) => {
                self.end();
                return Some(self.outcome(false, &format!("it cannot be waited for: {error}")));
            }
        };
        self.await_output();
        Some(self.outcome(status.success(), &failing(status)))
    }

    /// What it printed may still be in the pipe; a process that it left behind may keep that open.
    fn await_output(&mut self) {
        for _ in 0..20 {
            if self.reader.as_ref().is_none_or(|r| r.is_finished()) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn outcome(&self, passed: bool, why: &str) -> Outcome {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let output = String::from_utf8_lossy(&output).trim().to_owned();
        let parts = [output.as_str(), why];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Outcome {
            passed: Some(passed),
            output: parts.join("\n"),
        }
    }

    /// Kills it with all that it started, and does not wait.
    fn end(&mut self) {
        tree::end(self.child.id());
        let _ = self.child.kill();
    }

    fn is_gone(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.is_gone() {
            self.end();
        }
    }
}

/// Why a command that ended did not pass; nothing where it did.
fn failing(status: ExitStatus) -> String {
    match status.success() {
        true => String::new(),
        false => status.to_string(),
    }
}

fn checkup(patient: Patient, outcome: Outcome) -> Checkup {
    Checkup {
        device: patient.id,
        reading: Reading {
            values: Values::Deep(outcome),
            unsupported: Vec::new(),
            failures: Vec::new(),
        },
    }
}

/// Keeps the end of what is read.
fn keep(mut from: impl Read, into: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..count]);
        let surplus = kept.len().saturating_sub(TAIL);
        kept.drain(..surplus);
    }
}

#[cfg(test)]
mod tests;
