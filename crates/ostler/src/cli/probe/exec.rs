//! `ostler probe exec`.

use std::{ffi::OsString, process::ExitCode};

#[derive(Debug, clap::Args)]
pub(super) struct ProbeExecArgs {
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

// === impl ProbeExecArgs ===

impl ProbeExecArgs {
    pub(super) fn exec_probe(self) -> anyhow::Result<ExitCode> {
        // execve(2) returns only if it fails.
        let never = probe::exec::exec(&self.command)?;
        match never {}
    }
}
