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
pub(super) struct ProbeArgs {
    #[command(subcommand)]
    backend: ProbeCommand,
}

#[derive(Debug, Subcommand)]
enum ProbeCommand {
    /// NVIDIA's cards, through NVML
    Nvidia(nvidia::NvidiaProbeArgs),
    Check(check::ProbeCheckArgs),
    /// Run a user's probe program, with the rights that the agent gives it
    #[command(hide = true)]
    Exec(exec::ProbeExecArgs),
}

// === impl ProbeArgs ===

impl ProbeArgs {
    pub(super) fn run_probe(self) -> anyhow::Result<ExitCode> {
        match self.backend {
            ProbeCommand::Nvidia(args) => args.run_nvidia_probe(),
            ProbeCommand::Check(args) => args.check_probe(),
            ProbeCommand::Exec(args) => args.exec_probe(),
        }
    }
}
