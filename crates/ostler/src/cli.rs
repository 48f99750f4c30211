//! The command line.

mod config;
mod demo;
mod devices;
mod log;
mod nvidia;
mod place;
mod probe;
mod run;
mod sim;
mod table;
mod topology;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub(crate) use self::nvidia::spell_out;

/// Hands accelerators to Kubernetes pods: a node agent that is a device plugin.
///
/// Try it without a GPU: `ostler demo` plays a simulated node in this terminal.
#[derive(Debug, Parser)]
#[command(name = "ostler", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    log: log::Args,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Devices(devices::Args),
    Topology(topology::Args),
    Config(config::Args),
    Demo(demo::Args),
    Sim(sim::Args),
    Probe(probe::Args),
    NvidiaDevicePlugin(nvidia::Args),
}

// === impl Cli ===

impl Cli {
    /// Carries the command out.
    pub(crate) fn start(self) -> anyhow::Result<ExitCode> {
        let _flush = self.log.start(match &self.command {
            Command::Run(_) | Command::Probe(_) | Command::NvidiaDevicePlugin(_) => "info",
            Command::Devices(_)
            | Command::Topology(_)
            | Command::Config(_)
            | Command::Demo(_)
            | Command::Sim(_) => "warn",
        });
        match self.command {
            Command::Run(args) => args.start(self.log.repeat()),
            Command::Devices(args) => args.start(),
            Command::Topology(args) => args.start(),
            Command::Config(args) => args.start(),
            Command::Demo(args) => args.start(),
            Command::Sim(args) => args.start(),
            Command::Probe(args) => args.start(),
            Command::NvidiaDevicePlugin(args) => args.start(self.log.repeat()),
        }
    }
}

/// Runs a command's future on a runtime of one thread, which is all that the agent needs.
fn block_on<F: Future>(future: F) -> anyhow::Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(future))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
