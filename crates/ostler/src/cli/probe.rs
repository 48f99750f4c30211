//! `ostler probe`: the program that the agent starts as a child, and that a person can run to see
//! the same. Each vendor's flags have a file of their own.

mod check;
mod exec;
mod nvidia;

use std::process::ExitCode;

use clap::Subcommand;

/// Look at the hardware and print what is there, one JSON object per line.
///
/// The agent runs this as a child process; run by hand, it prints what the agent would see.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    backend: Backend,
}

#[derive(Debug, Subcommand)]
enum Backend {
    /// NVIDIA's cards, through NVML
    Nvidia(nvidia::Args),
    Check(check::Args),
    /// A program of yours, with the rights that the agent gives it
    #[command(hide = true)]
    Exec(exec::Args),
}

// === impl Args ===

impl Args {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        match self.backend {
            Backend::Nvidia(args) => args.start(),
            Backend::Check(args) => args.start(),
            Backend::Exec(args) => args.start(),
        }
    }
}
