//! `ostler probe exec`.

use std::{ffi::OsString, process::ExitCode};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

// === impl Args ===

impl Args {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        // execve(2) returns only if it fails.
        let never = probe::exec::exec(&self.command)?;
        match never {}
    }
}
