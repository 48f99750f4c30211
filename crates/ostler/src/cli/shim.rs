//! `ostler shim`: the process that the agent puts between itself and a command of a user's.

use std::{ffi::OsString, process::ExitCode};

use anyhow::Context;

/// Run a command for the agent, and end it with all that it started when the agent says so.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

// === impl Args ===

impl Args {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        prepare::command::shim(&self.command).context("only the agent runs this command")?;
        Ok(ExitCode::SUCCESS)
    }
}
