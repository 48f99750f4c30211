//! Notes on values that could not be read.

use std::collections::BTreeSet;

/// Notes on values that could not be read, each text once.
#[derive(Debug, Default)]
pub(super) struct CaptureNotes {
    seen: BTreeSet<String>,
    lines: Vec<String>,
}

// === impl CaptureNotes ===

impl CaptureNotes {
    /// Adds a note, unless it is there already.
    pub(super) fn add_note(&mut self, line: &str) {
        if self.seen.insert(line.to_owned()) {
            self.lines.push(line.to_owned());
        }
    }

    /// Returns a fact. On an error adds a note, and returns `default`.
    pub(super) fn read_or<T>(&mut self, what: &str, fact: Result<T, nvml::Error>, default: T) -> T {
        fact.unwrap_or_else(|error| {
            self.add_note(&format!("{what} is left out: {error}"));
            default
        })
    }

    /// Returns a fact that many cards do not have. "Not supported" makes no note; other errors do.
    pub(super) fn maybe<T>(&mut self, what: &str, fact: Result<T, nvml::Error>) -> Option<T> {
        match fact {
            Ok(fact) => Some(fact),
            Err(error) if error.is_not_supported() => None,
            Err(error) => {
                self.add_note(&format!("{what} is left out: {error}"));
                None
            }
        }
    }

    /// Prints all notes on standard error.
    pub(super) fn print_notes(&self) {
        for line in &self.lines {
            anstream::eprintln!("ostler: {line}");
        }
    }
}
