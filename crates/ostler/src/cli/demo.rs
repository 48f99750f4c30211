//! `ostler demo`: a simulated node, a simulated kubelet and the real agent in one terminal.

mod agent;
mod live;
mod stage;
mod story;
mod tell;
mod why;

use std::{io, process::ExitCode};

use super::sim::{DEFAULT, kubelet::EndSignals, load_profile};
use stage::Stage;
use story::Story;
use tell::Teller;

/// Exit status after Ctrl-C: 128 and the number of SIGINT, as shells have it.
const INTERRUPTED: u8 = 130;

/// Exit status after the reader closed the output: 128 and the number of SIGPIPE, as shells have it.
const UNHEARD: u8 = 141;

/// Text at the top of `ostler demo --help`.
const STORY: &str = "\
The GPUs and the kubelet are simulated; the agent is the real one, in a process of its own, and
finds the GPUs through NVML as on any node. The story: GPUs are found, the agent registers, a pod
gets GPUs, one of them fails and is taken out of service, and comes back.

On a terminal the node then stays up, for you to break and mend, until Ctrl-C. All files are in a
temporary folder, which is removed at the end; no rights are needed.";

/// Run a simulated node: GPUs, kubelet and agent in one terminal.
#[derive(Debug, clap::Args)]
#[command(before_long_help = STORY)]
pub(super) struct Args {
    /// The machine: a name of `ostler sim profiles`, or a YAML file
    #[arg(long, value_name = "NAME|FILE", default_value = DEFAULT)]
    profile: String,

    /// End after the last step, with status 0 if every step succeeded
    #[arg(long)]
    oneshot: bool,
}

/// End of the demo.
#[derive(Debug)]
enum End {
    /// Every step ran, or one failed.
    Played(anyhow::Result<()>),
    /// A signal came.
    Interrupted,
}

// === impl Args ===

impl Args {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        super::block_on(self.play())?
    }

    async fn play(self) -> anyhow::Result<ExitCode> {
        let profile = load_profile(&self.profile)?;
        let mut ends = EndSignals::new()?;
        let teller = Teller::new(self.oneshot);
        let mut stage = Stage::build(&profile).await?;
        let end = tokio::select! {
            played = Story::play(&mut stage, teller, &profile) => End::Played(played),
            () = ends.wait_for_signal() => End::Interrupted,
        };
        let end = match end {
            End::Played(Ok(())) if teller.is_live() => {
                let watched = live::watch(&mut stage, &mut ends).await;
                End::Played(watched)
            }
            end => end,
        };
        match end {
            End::Played(Ok(())) => stage.strike().await.map(|()| ExitCode::SUCCESS),
            End::Interrupted => {
                stage.strike().await?;
                Ok(ExitCode::from(INTERRUPTED))
            }
            End::Played(Err(error)) if is_unheard(&error) => {
                stage.strike().await?;
                Ok(ExitCode::from(UNHEARD))
            }
            End::Played(Err(error)) => Err(stage.keep(error).await),
        }
    }
}

/// True if the reader closed our output, as `head` does.
fn is_unheard(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
