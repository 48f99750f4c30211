//! What could not be read.

use std::collections::BTreeSet;

/// What could not be read, each thing once.
#[derive(Debug, Default)]
pub(super) struct Notes {
    seen: BTreeSet<String>,
    lines: Vec<String>,
}

// === impl Notes ===

impl Notes {
    /// Writes something down.
    pub(super) fn add(&mut self, line: &str) {
        if self.seen.insert(line.to_owned()) {
            self.lines.push(line.to_owned());
        }
    }

    /// A fact, or what stands for it if the driver does not tell; that is written down.
    pub(super) fn or<T>(&mut self, what: &str, fact: Result<T, nvml::Error>, default: T) -> T {
        fact.unwrap_or_else(|error| {
            self.add(&format!("{what} is left out: {error}"));
            default
        })
    }

    /// A fact that many cards do not have: only other failures are written down.
    pub(super) fn maybe<T>(&mut self, what: &str, fact: Result<T, nvml::Error>) -> Option<T> {
        match fact {
            Ok(fact) => Some(fact),
            Err(error) if error.is_not_supported() => None,
            Err(error) => {
                self.add(&format!("{what} is left out: {error}"));
                None
            }
        }
    }

    /// Says everything on the standard error.
    pub(super) fn tell(&self) {
        for line in &self.lines {
            anstream::eprintln!("ostler: {line}");
        }
    }
}
