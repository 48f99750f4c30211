//! Measures the agent on a simulated node with a kubelet: start, calls, faults, memory, idle CPU,
//! and the functions behind the calls; and beside it, in the same run and by the same client,
//! NVIDIA's programs. Everything is measured from outside, over the sockets and `/proc`.

mod binary;
mod calls;
mod check;
mod differential;
mod elf;
mod figures;
mod functions;
mod house;
mod idle;
mod machine;
mod measure;
mod pair;
mod peer;
mod placement;
mod plan;
mod report;
mod running;
mod tree;
mod value;

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::ensure;
use clap::Parser;

use self::{machine::Machine, peer::Programs, plan::Args};

/// Measure the agent on a simulated node. Without a command, it is measured alone.
#[derive(Debug, Parser)]
#[command(name = "bench", args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    args: Args,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Measure it beside NVIDIA's programs; bench/compare builds them and calls this
    Compare {
        /// The folder with nvidia-device-plugin and gpu-feature-discovery; its name has their
        /// version
        #[arg(long, value_name = "DIR")]
        nvidia: PathBuf,

        #[command(flatten)]
        args: Args,
    },

    /// Check the simulated nodes with NVIDIA's programs; bench/check calls this
    Check(check::Args),

    /// Compare it with NVIDIA's device plugin, case by case; bench/differential calls this
    Differential(differential::Args),

    /// Measure how the source reads, and write HOUSE.md; bench/house calls this
    House(house::Args),

    /// Leave it alone and see that it does nothing; bench/idle calls this
    Idle(idle::Args),

    /// Let containers come and go, and see what placement makes of it; bench/placement calls this
    Placement(placement::Args),
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    match cli.command {
        None => measure(&cli.args, None),
        Some(Command::Compare { nvidia, args }) => measure(&args, Some(nvidia)),
        Some(Command::Check(args)) => wait(check::run(&args)),
        Some(Command::Differential(args)) => wait(differential::run(&args)),
        Some(Command::House(args)) => house::run(&args),
        Some(Command::Idle(args)) => wait(idle::run(&args)),
        Some(Command::Placement(args)) => placement::run(&args),
    }
}

/// Waits for the end of something, on this thread.
fn wait(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build()?.block_on(work)
}

/// Measures, prints, and writes the results.
fn measure(args: &Args, nvidia: Option<PathBuf>) -> anyhow::Result<()> {
    ensure!(
        !cfg!(debug_assertions),
        "a debug build measures nothing; use `cargo run --release -p bench`"
    );
    let (without_sim, ostler) = match &args.binary {
        Some(binary) => (None, fs_err::canonicalize(binary)?),
        None => (Some(binary::build_without_sim()?), binary::build()?),
    };
    let mut machine = Machine::read(&ostler, args.binary.is_none())?;
    machine.peer = nvidia.as_deref().map(name);
    let programs = Programs {
        ostler,
        without_sim,
        nvidia,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let report = runtime.block_on(measure::measure(&programs, machine, args))?;
    writeln!(io::stdout(), "\n{}", report.text())?;
    let whole = !args.quick && args.only.is_empty();
    let default = whole.then(|| Path::new(env!("CARGO_MANIFEST_DIR")));
    if let Some(output) = args.output.as_deref().or(default) {
        writeln!(io::stdout(), "\nwritten: {}", report.write(output)?)?;
    }
    Ok(())
}

/// What a folder's name says of the programs in it.
fn name(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    format!("NVIDIA's {}", name.to_string_lossy())
}
