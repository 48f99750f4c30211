//! `ostler sim`: a simulated node in a folder, and the commands that change it.

mod capture;
mod change;
mod create;
pub(super) mod kubelet;
mod open;
mod renew;
mod show;

use std::{io::Write, path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::Subcommand;
use sim::Node;

pub(super) use create::{DEFAULT, load_profile, program_name, quoted};

/// Text at the top of `ostler sim --help`.
const EXAMPLES: &str = "\
Examples:
  ostler sim create /tmp/node         make a DGX A100 with eight GPUs, and say how to use it
  export OSTLER_SIM_NODE=/tmp/node    spares the --node of the commands below
  ostler sim show                     show what is on the node
  ostler sim xid 3 79                 let the driver report XID 79 on GPU 3
  ostler sim lose 3                   let GPU 3 fall off the bus
  ostler sim restore 3                ... and come back
  ostler sim hang nvmlDeviceGetMemoryInfo --device 3 --for 10s

A node is a folder: a driver library (libnvidia-ml.so.1) with NVML's real interface, and the host's
files around it. Every program that has loaded the library sees each change at once.

TARGET is a device: an index (3), a MIG index (3:1), a UUID (GPU-… or MIG-…), a PCI address
(0000:07:00.0), or `all` for every card.";

/// Make a simulated GPU node in a folder, and change it while programs use it.
#[derive(Debug, clap::Args)]
#[command(before_long_help = EXAMPLES)]
pub(super) struct Args {
    /// The node's folder
    #[arg(long, global = true, env = "OSTLER_SIM_NODE", value_name = "DIR")]
    node: Option<PathBuf>,

    #[command(subcommand)]
    command: SimCommand,
}

#[derive(Debug, Subcommand)]
enum SimCommand {
    Create(create::SimCreateArgs),
    Capture(capture::SimCaptureArgs),
    /// List the profiles for new nodes
    Profiles,
    Show(show::SimShowArgs),
    #[command(flatten)]
    Change(change::NodeChange),
    #[command(flatten)]
    Renew(renew::ResetCommand),
    Open(open::SimOpenArgs),
    /// Record every NVML call from now on
    Trace,
    /// Print the NVML calls recorded since `trace`, one a line
    Calls,
    Kubelet(kubelet::SimKubeletArgs),
}

// === impl Args ===

impl Args {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        let text = match self.command {
            SimCommand::Create(args) => args.create_node()?,
            SimCommand::Capture(args) => args.capture()?,
            SimCommand::Profiles => create::profile_table()?,
            SimCommand::Kubelet(args) => {
                super::block_on(args.run_kubelet())??;
                return Ok(ExitCode::SUCCESS);
            }
            command => {
                let Some(dir) = self.node else {
                    anstream::eprintln!(
                        "ostler: no node is named; give --node DIR or set OSTLER_SIM_NODE \
                         (`ostler sim create DIR` makes one)"
                    );
                    return Ok(ExitCode::from(crate::USAGE));
                };
                command.run_on_node(&open_node(dir)?)?
            }
        };
        anstream::stdout().write_all(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

// === impl SimCommand ===

impl SimCommand {
    /// Runs a command on a node. Returns the text to print.
    fn run_on_node(self, node: &Node) -> anyhow::Result<String> {
        match self {
            Self::Show(args) => args.show_node(node),
            Self::Change(change) => change.apply_change(node),
            Self::Renew(renew) => renew.run_reset(node),
            Self::Open(args) => args.show_holders(node),
            Self::Trace => {
                node.trace()?;
                Ok(
                    "every NVML call is recorded from now on; `ostler sim calls` prints them\n"
                        .into(),
                )
            }
            Self::Calls => {
                let calls = node.traced_calls()?;
                Ok(calls.iter().map(|call| format!("{call}\n")).collect())
            }
            Self::Create(_) | Self::Capture(_) | Self::Profiles | Self::Kubelet(_) => {
                Ok(String::new())
            }
        }
    }
}

/// Opens the node in a folder.
///
/// # Errors
/// There is no node in the folder (the message names the remedy), or it cannot be read.
fn open_node(dir: PathBuf) -> anyhow::Result<Node> {
    let place = dir.display();
    if !dir.join("node.json").exists() {
        anyhow::bail!(
            "there is no simulated node in {place}; `ostler sim create {place}` makes one"
        );
    }
    Node::open_node(&dir).with_context(|| format!("cannot use the simulated node in {place}"))
}
