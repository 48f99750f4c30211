//! `ostler probe`: the program that the agent starts as a child, and that a person can run by hand.
//! Each vendor's flags have a file of their own.

mod check;
mod exec;
mod nvidia;

use std::process::ExitCode;

use clap::Subcommand;

/// Read the hardware and print reports, one JSON object per line.
///
/// The agent runs this as a child process. Run by hand, it prints what the agent would read.
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
    /// Run a user's probe program, with the rights that the agent gives it
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
