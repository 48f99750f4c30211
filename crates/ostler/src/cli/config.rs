//! `ostler config`: checks a config, shows the effective one, prints the schema.

mod check;
mod explain;

use std::{io::Write, process::ExitCode};

use clap::Subcommand;

/// Check a config, show the effective one, or print the JSON schema.
#[derive(Debug, clap::Args)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    Check(check::ConfigCheckArgs),
    Explain(Box<explain::ExplainArgs>),
    /// Print the JSON schema of ostler.yaml
    Schema,
}

// === impl ConfigArgs ===

impl ConfigArgs {
    pub(super) fn run_config(self) -> anyhow::Result<ExitCode> {
        match self.command {
            ConfigCommand::Check(args) => args.check_files(),
            ConfigCommand::Explain(args) => args.explain_config(),
            ConfigCommand::Schema => {
                let text = super::table::serialize_output(&config::schema(), false)?;
                std::io::stdout().write_all(text.as_bytes())?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}
