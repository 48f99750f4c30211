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
pub(super) struct CdiArgs {
    #[command(subcommand)]
    command: CdiCommand,
}

#[derive(Debug, Subcommand)]
enum CdiCommand {
    Generate(generate::CdiGenerateArgs),
    List(list::CdiListArgs),
    Validate(validate::CdiValidateArgs),
}

// === impl CdiArgs ===

impl CdiArgs {
    pub(super) fn run_cdi(self) -> anyhow::Result<ExitCode> {
        match self.command {
            CdiCommand::Generate(args) => args.generate_specs(),
            CdiCommand::List(args) => args.list_names(),
            CdiCommand::Validate(args) => args.validate_specs(),
        }
    }
}
