//! The command line.

mod cdi;
mod config;
mod control;
mod cordon;
#[cfg(feature = "sim")]
mod demo;
mod devices;
mod health;
mod log;
#[cfg(not(feature = "sim"))]
mod no_sim;
mod nvidia;
mod place;
mod probe;
mod release;
mod run;
mod shim;
#[cfg(feature = "sim")]
mod sim;
mod table;
mod topology;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[cfg(not(feature = "sim"))]
use self::{no_sim as demo, no_sim as sim};

pub(crate) use self::nvidia::{
    DaemonFlags, DriverFlags, DropIn, DropInFlags, SpecFlags, spell_out,
};

/// Node agent and device plugin: gives accelerators to Kubernetes pods.
#[cfg_attr(
    feature = "sim",
    doc = "\nTry it without a GPU: `ostler demo` plays a simulated node in this terminal."
)]
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
    Health(health::Args),
    Cordon(cordon::Args),
    Uncordon(cordon::Back),
    Release(release::Args),
    Resume(release::Back),
    Topology(topology::Args),
    Config(config::Args),
    Cdi(cdi::Args),
    #[cfg_attr(not(feature = "sim"), command(hide = true))]
    Demo(demo::Args),
    #[cfg_attr(not(feature = "sim"), command(hide = true))]
    Sim(sim::Args),
    Probe(probe::Args),
    #[command(hide = true)]
    Shim(shim::Args),
    NvidiaDevicePlugin(nvidia::Args),
}

// === impl Cli ===

impl Cli {
    /// True if the program runs in the place of NVIDIA's device plugin.
    pub(crate) fn is_plugin(&self) -> bool {
        matches!(self.command, Command::NvidiaDevicePlugin(_))
    }

    /// Starts the log, runs the command, and returns the exit status.
    pub(crate) fn start(self) -> anyhow::Result<ExitCode> {
        let _flush = self.log.start(match &self.command {
            // Other commands print their result: their log is for problems.
            Command::Run(_) | Command::Probe(_) | Command::NvidiaDevicePlugin(_) => "info",
            Command::Devices(_)
            | Command::Health(_)
            | Command::Cordon(_)
            | Command::Uncordon(_)
            | Command::Release(_)
            | Command::Resume(_)
            | Command::Topology(_)
            | Command::Config(_)
            | Command::Cdi(_)
            | Command::Demo(_)
            | Command::Sim(_)
            | Command::Shim(_) => "warn",
        });
        match self.command {
            Command::Run(args) => args.start(self.log.repeat()),
            Command::Devices(args) => args.start(),
            Command::Health(args) => args.start(),
            Command::Cordon(args) => args.start(),
            Command::Uncordon(args) => args.start(),
            Command::Release(args) => args.start(),
            Command::Resume(args) => args.start(),
            Command::Topology(args) => args.start(),
            Command::Config(args) => args.start(),
            Command::Cdi(args) => args.start(),
            Command::Demo(args) => args.start(),
            Command::Sim(args) => args.start(),
            Command::Probe(args) => args.start(),
            Command::Shim(args) => args.start(),
            Command::NvidiaDevicePlugin(args) => args.start(self.log.repeat()),
        }
    }
}

/// Runs a command's future on a runtime of one thread.
fn block_on<F: Future>(future: F) -> anyhow::Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let output = runtime.block_on(future);
    // A plain drop waits for blocking tasks (tokio, `Runtime::shutdown_background`): a write to a
    // disk that hangs would keep the process.
    runtime.shutdown_background();
    Ok(output)
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
