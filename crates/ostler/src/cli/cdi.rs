//! `ostler cdi`: specs for container runtimes, made, listed and checked.

mod files;
mod generate;
mod list;
mod validate;

use std::process::ExitCode;

use clap::Subcommand;

/// Make, list and check CDI specs.
///
/// CDI is how a container runtime learns what a device's name stands for. The agent writes its own
/// specs where a pool hands devices over by CDI.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Generate(generate::Args),
    List(list::Args),
    Validate(validate::Args),
}

// === impl Args ===

impl Args {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Generate(args) => args.start(),
            Command::List(args) => args.start(),
            Command::Validate(args) => args.start(),
        }
    }
}
