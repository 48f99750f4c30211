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
    log: log::LogArgs,

    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    Run(run::RunArgs),
    Devices(devices::DevicesArgs),
    Health(health::HealthArgs),
    Cordon(cordon::CordonArgs),
    Uncordon(cordon::UncordonArgs),
    Release(release::ReleaseArgs),
    Resume(release::ResumeArgs),
    Topology(topology::TopologyArgs),
    Config(config::ConfigArgs),
    Cdi(cdi::CdiArgs),
    #[cfg_attr(not(feature = "sim"), command(hide = true))]
    Demo(demo::Args),
    #[cfg_attr(not(feature = "sim"), command(hide = true))]
    Sim(sim::Args),
    Probe(probe::ProbeArgs),
    #[command(hide = true)]
    Shim(shim::ShimArgs),
    NvidiaDevicePlugin(nvidia::NvidiaPluginArgs),
}

// === impl Cli ===

impl Cli {
    /// True if the program runs in the place of NVIDIA's device plugin.
    pub(crate) fn is_plugin(&self) -> bool {
        matches!(self.command, CliCommand::NvidiaDevicePlugin(_))
    }

    /// Starts the log, runs the command, and returns the exit status.
    pub(crate) fn run_command(self) -> anyhow::Result<ExitCode> {
        let _flush = self.log.start_log(match &self.command {
            // The other commands print a result, so their log has only problems by default.
            CliCommand::Run(_) | CliCommand::Probe(_) | CliCommand::NvidiaDevicePlugin(_) => "info",
            CliCommand::Devices(_)
            | CliCommand::Health(_)
            | CliCommand::Cordon(_)
            | CliCommand::Uncordon(_)
            | CliCommand::Release(_)
            | CliCommand::Resume(_)
            | CliCommand::Topology(_)
            | CliCommand::Config(_)
            | CliCommand::Cdi(_)
            | CliCommand::Demo(_)
            | CliCommand::Sim(_)
            | CliCommand::Shim(_) => "warn",
        });
        match self.command {
            CliCommand::Run(args) => args.start_agent(self.log.repeat()),
            CliCommand::Devices(args) => args.run_devices(),
            CliCommand::Health(args) => args.run_health(),
            CliCommand::Cordon(args) => args.send_cordon(),
            CliCommand::Uncordon(args) => args.send_uncordon(),
            CliCommand::Release(args) => args.send_release(),
            CliCommand::Resume(args) => args.send_resume(),
            CliCommand::Topology(args) => args.run_topology(),
            CliCommand::Config(args) => args.run_config(),
            CliCommand::Cdi(args) => args.run_cdi(),
            CliCommand::Demo(args) => args.start(),
            CliCommand::Sim(args) => args.start(),
            CliCommand::Probe(args) => args.run_probe(),
            CliCommand::Shim(args) => args.run_shim(),
            CliCommand::NvidiaDevicePlugin(args) => args.run_plugin(self.log.repeat()),
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
    // disk that hangs would keep the process from exiting.
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
