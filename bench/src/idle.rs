//! Leaves agents alone on a simulated node and sees that they do nothing: no snapshot, no plan, no
//! spec rewritten, no list sent. Says what that and its start cost, beside an older agent if there is one.

mod starts;
mod table;
mod watch;

use std::{
    io::{self, Write as _},
    path::PathBuf,
    time::Duration,
};

use anyhow::ensure;
use tokio::time::sleep;

use self::watch::{Mode, Seen, Watched};
use crate::{
    binary,
    pair::Pair,
    peer::{Launch, Program, Programs, Site},
};

/// The machine: eight GPUs behind NVSwitches.
const PROFILE: &str = "dgx-a100";

/// How long an agent is left alone before it is watched.
const SETTLE: Duration = Duration::from_secs(5);

/// What bench/idle takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For how many seconds the agents are left alone
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    seconds: u64,

    /// How often each agent is started and stopped before that
    #[arg(long, value_name = "N", default_value_t = 20)]
    starts: usize,

    /// An older agent to run beside it; it is measured, not judged
    #[arg(long, value_name = "FILE")]
    beside: Option<PathBuf>,

    /// The agent to judge [default: the one that `cargo build --release` makes]
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Leaves all agents alone at the same time, prints what was seen, and judges ours.
///
/// # Errors
/// If an agent does not serve, or ours does something.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    ensure!(
        !cfg!(debug_assertions),
        "a debug build measures nothing; use `bench/idle`"
    );
    let agents = agents(args)?;
    let site = Site::make(PROFILE)?;
    let starts = starts::measure(&site, &agents, args.starts).await?;
    let mut watched = Vec::new();
    for mode in Mode::ALL {
        let start = async |agent: &Launch| Watched::start(&site, agent, mode).await;
        watched.push((mode, agents.as_ref().each(start).await?));
    }
    sleep(SETTLE).await;
    for agent in watched.iter_mut().flat_map(|(_, pair)| pair.iter_mut()) {
        agent.begin().await?;
    }
    sleep(Duration::from_secs(args.seconds)).await;
    let mut seen = Vec::new();
    for (mode, pair) in watched {
        seen.push((mode, pair.each(async |agent| agent.end().await).await?));
    }
    let head = format!("idle for {} s on {PROFILE}", args.seconds);
    writeln!(io::stdout(), "{}", table::text(&head, &seen, &starts))?;
    let faults = seen
        .iter()
        .flat_map(|(mode, pair)| faults(*mode, &pair.ours));
    let faults: Vec<String> = faults.collect();
    ensure!(faults.is_empty(), "not idle:\n{}", faults.join("\n"));
    Ok(())
}

/// Ours, and the older one.
fn agents(args: &Args) -> anyhow::Result<Pair<Launch>> {
    let agent = |ostler: PathBuf| {
        let programs = Programs {
            without_sim: None,
            ostler,
            nvidia: None,
        };
        Launch::of(&programs, Program::Ostler)
    };
    let ours = match &args.binary {
        Some(binary) => binary.clone(),
        None => binary::build()?,
    };
    Ok(Pair {
        ours: agent(ours)?,
        theirs: args.beside.clone().map(agent).transpose()?,
    })
}

/// What an agent did that an idle one does not do.
fn faults(mode: Mode, seen: &Seen) -> Vec<String> {
    let did = [
        ("snapshots published", seen.snapshots),
        ("plans made", seen.plans.unwrap_or(0)),
        ("specs rewritten", seen.rewritten),
        ("lists sent", seen.lists),
    ];
    let did = did.into_iter().filter(|(_, count)| *count > 0);
    let mut faults: Vec<String> = did
        .map(|(what, count)| format!("{}: {count} {what}", mode.name()))
        .collect();
    // Without these, nothing was seen.
    let void = [
        (seen.plans.is_none(), "the log tells of no plan"),
        (
            mode.has_specs() != (seen.specs > 0),
            "the specs are not those of the config",
        ),
    ];
    let void = void.into_iter().filter(|(is, _)| *is);
    faults.extend(void.map(|(_, what)| format!("{}: {what}", mode.name())));
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle() -> Seen {
        Seen {
            plans: Some(0),
            ..Seen::default()
        }
    }

    #[test]
    fn an_agent_that_does_nothing_is_idle() {
        assert_eq!(faults(Mode::Defaults, &idle()), [""; 0]);
        let specs = Seen { specs: 1, ..idle() };
        assert_eq!(faults(Mode::Cdi, &specs), [""; 0]);
    }

    #[test]
    fn whatever_it_does_is_told() {
        let busy = Seen {
            snapshots: 1,
            plans: Some(2),
            specs: 1,
            rewritten: 3,
            lists: 4,
            ..Seen::default()
        };
        assert_eq!(faults(Mode::Cdi, &busy).len(), 4);
    }

    #[test]
    fn a_run_that_shows_nothing_is_no_proof() {
        let blind = Seen::default();
        assert_eq!(faults(Mode::Defaults, &blind).len(), 1, "no plan is logged");
        assert_eq!(faults(Mode::Cdi, &idle()).len(), 1, "there are no specs");
    }
}
