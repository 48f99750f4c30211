//! One run of the command for deep checks.

use std::{
    io::{self, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use host::tree;
use model::Deep as Outcome;
use tokio::time::Instant;

use super::Patient;

/// How much of a command's output is kept: its end.
pub(super) const TAIL: usize = 2048;

const STACK: usize = 128 << 10;

/// A command that runs.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) patient: Patient,
    child: Child,
    since: Instant,
    output: Arc<Mutex<Vec<u8>>>,
    reader: Option<thread::JoinHandle<()>>,
}

// === impl Run ===

impl Run {
    /// Starts the command for a card.
    pub(super) fn start(command: &[String], patient: &Patient, now: Instant) -> io::Result<Self> {
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
            .env("OSTLER_DEVICE_PCI", or_empty(patient.pci))
            .env("OSTLER_DEVICE_INDEX", or_empty(patient.index))
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
        tracing::info!(card = %patient.id, program, "a deep check begins");
        Ok(Self {
            patient: patient.clone(),
            child,
            since: now,
            output,
            reader,
        })
    }

    /// What came of it; `None` while it runs.
    pub(super) fn ended(&mut self, limit: Duration, now: Instant) -> Option<Outcome> {
        let status = match self.child.try_wait() {
            Ok(None) if now.duration_since(self.since) < limit => return None,
            Ok(None) => {
                self.end();
                let limit = limit.as_secs_f64();
                let why = format!("ended because it took longer than {limit} s");
                return Some(self.outcome(false, &why));
            }
            Ok(Some(status)) => status,
            // It is no child of ours any more: its id may be another's by now.
            Err(error) => {
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
        tree::end(self.id(), None);
        let _ = self.child.kill();
    }

    /// Its process id.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn is_gone(&mut self) -> bool {
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

fn or_empty(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Why a command that ended did not pass; nothing where it did.
fn failing(status: ExitStatus) -> String {
    match status.success() {
        true => String::new(),
        false => status.to_string(),
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
