//! `ostler config`: checks a config, shows the effective one, prints the schema.

mod check;
mod explain;

use std::{io::Write, process::ExitCode};

use clap::Subcommand;

/// Check a config, show the effective one, or print the JSON schema.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Args),
    Explain(Box<explain::Args>),
    /// Print the JSON schema of ostler.yaml
    Schema,
}

// === impl Args ===

impl Args {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Check(args) => args.start(),
            Command::Explain(args) => args.start(),
            Command::Schema => {
                let text = super::table::text(&config::schema(), false)?;
                std::io::stdout().write_all(text.as_bytes())?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}
