//! `ostler cdi`: makes, lists and checks CDI specs.

mod files;
mod generate;
mod list;
mod validate;

use std::process::ExitCode;

use clap::Subcommand;

/// Make, list and check CDI specs.
///
/// A CDI spec (Container Device Interface) tells a container runtime what a container gets for a
/// device's name. The agent writes specs of its own for pools that use CDI.
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
