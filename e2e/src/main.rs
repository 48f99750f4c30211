//! The end-to-end tests: `smoke`, `full` and `shell`. `e2e/run` builds what is needed and starts
//! this program; the other commands are how it starts itself again in new namespaces.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use e2e::{
    inside::{self, Mode},
    outside,
    say::say,
};

/// Tests of the agent on a real kubelet.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the tests that belong to every change.
    Smoke(Node),
    /// Run all tests, also those that take minutes.
    Full(Node),
    /// Bring a node up and open a shell on it.
    Shell(Node),
    /// List the tests.
    List,
    /// Join the cgroup of a run and leave the caller's namespaces.
    #[command(hide = true)]
    Enter {
        /// The name of the run.
        id: String,
        /// The rest of the way in.
        #[arg(last = true)]
        then: Vec<String>,
    },
    /// Leave the top of the run's cgroup to the kubelet.
    #[command(hide = true)]
    Settle {
        /// The name of the run.
        id: String,
        /// The rest of the way in.
        #[arg(last = true)]
        then: Vec<String>,
    },
    /// Become the first process of the node, in a root of its own.
    #[command(hide = true)]
    Inside {
        /// The work folder.
        work: PathBuf,
        /// The rest of the way in.
        #[arg(last = true)]
        then: Vec<String>,
    },
    /// Bring the node up and work on it.
    #[command(hide = true)]
    Node {
        /// What to do there.
        mode: Mode,
        /// Only tests whose name contains this.
        #[arg(long)]
        only: Option<String>,
    },
}

#[derive(Debug, Args)]
struct Node {
    /// The kubelet.
    #[arg(long)]
    kubelet: PathBuf,
    /// The folder with containerd, containerd-shim-runc-v2 and ctr.
    #[arg(long)]
    containerd: PathBuf,
    /// The agent.
    #[arg(long)]
    agent: PathBuf,
    /// Only tests whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Keep the logs also when all is well.
    #[arg(long)]
    keep: bool,
}

// === impl Node ===

impl Node {
    fn plan(self, mode: Mode) -> outside::Plan {
        outside::Plan {
            kubelet: self.kubelet,
            containerd: self.containerd,
            agent: self.agent,
            only: self.only,
            keep: self.keep,
            mode,
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    start(Cli::parse().command).await.unwrap_or_else(|error| {
        say(format_args!("e2e: {error:#}"));
        ExitCode::FAILURE
    })
}

async fn start(command: Command) -> Result<ExitCode> {
    match command {
        Command::Smoke(node) => outside::run(node.plan(Mode::Smoke)).await,
        Command::Full(node) => outside::run(node.plan(Mode::Full)).await,
        Command::Shell(node) => outside::run(node.plan(Mode::Shell)).await,
        Command::List => {
            e2e::scenarios::list();
            Ok(ExitCode::SUCCESS)
        }
        Command::Enter { id, then } => outside::enter(&id, &then),
        Command::Settle { id, then } => outside::settle(&id, &then),
        Command::Inside { work, then } => inside::enter(&work, &then),
        Command::Node { mode, only } => inside::run(mode, only.as_deref()).await,
    }
}
