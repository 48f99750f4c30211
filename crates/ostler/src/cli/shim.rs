//! `ostler shim`: the process between the agent and a user's command.

use std::{ffi::OsString, process::ExitCode};

use anyhow::Context;

/// Run a command for the agent, and kill it with all its descendants when the agent says so.
#[derive(Debug, clap::Args)]
pub(super) struct ShimArgs {
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

// === impl ShimArgs ===

impl ShimArgs {
    pub(super) fn run_shim(self) -> anyhow::Result<ExitCode> {
        prepare::command::shim(&self.command).context("only the agent runs this command")?;
        Ok(ExitCode::SUCCESS)
    }
}
