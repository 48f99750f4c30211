//! `bench check`: NVIDIA's own programs as witnesses of the simulator. They run on every simulated
//! node that has NVML, and what they say must be what the node's profile says.

mod expect;
mod labels;
mod report;
mod run;

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use anyhow::ensure;
use clap::Parser;
use sim::{NodeProfile, state::Gpu};

use self::{
    expect::Strategy,
    report::{Finding, Report, Verdict},
};
use crate::{
    differential,
    peer::{Program, Programs, Site},
};

/// Check the simulated nodes with NVIDIA's own programs
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Profiles of simulated nodes [default: all that have NVML]
    #[arg(value_name = "PROFILE")]
    profiles: Vec<String>,

    /// The folder with nvidia-device-plugin and gpu-feature-discovery
    #[arg(long, value_name = "DIR")]
    nvidia: PathBuf,
}

/// A node to look at.
#[derive(Debug)]
struct Machine {
    /// The profile, and how it was changed.
    name: String,
    profile: NodeProfile,
}

/// Runs the programs on the nodes and prints a table.
///
/// # Errors
/// If anything is not the profile's.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let programs = Programs {
        without_sim: None,
        ostler: PathBuf::new(),
        nvidia: Some(args.nvidia.clone()),
    };
    let profiles = match args.profiles.as_slice() {
        [] => differential::profiles()?,
        some => some.to_vec(),
    };
    let mut report = Report::default();
    for name in profiles {
        for machine in machines(&name)? {
            writeln!(io::stderr(), "check: {}", machine.name)?;
            for finding in look(&machine, &programs).await? {
                report.add(finding);
            }
        }
    }
    write!(io::stdout(), "{}", report.text())?;
    ensure!(!report.fails(), "not everything is the profile's");
    Ok(())
}

/// The node of a profile; and, where all its cards can be cut, the same with all of them cut alike,
/// which no profile has.
fn machines(name: &str) -> anyhow::Result<Vec<Machine>> {
    let profile = NodeProfile::find_profile(name)?;
    let state = profile.to_state()?;
    let mut machines = vec![Machine {
        name: name.to_owned(),
        profile: profile.clone(),
    }];
    let shape = |gpu: &Gpu| state.models.get(&gpu.model)?.mig.first();
    let shapes: Option<Vec<_>> = state.gpus.iter().map(shape).collect();
    if let Some([first, rest @ ..]) = shapes.as_deref()
        && rest.iter().all(|shape| shape == first)
    {
        let mut even = profile;
        let layout = vec![first.name.clone(); first.count.try_into()?];
        for card in &mut even.gpus {
            card.mig = Some(layout.clone());
        }
        machines.push(Machine {
            name: format!("{name}, all {}", first.name),
            profile: even,
        });
    }
    Ok(machines)
}

/// Runs both programs on a node with every strategy.
async fn look(machine: &Machine, programs: &Programs) -> anyhow::Result<Vec<Finding>> {
    let site = Site::of(&machine.profile)?;
    let state = site.node.node_state()?;
    let mut findings = Vec::new();
    for strategy in Strategy::ALL {
        let offered = run::plugin(&site, programs, strategy).await;
        let expected = expect::plugin(&state, strategy);
        let verdict = offered.map_or_else(Verdict::failed, |seen| expect::judge(&expected, &seen));
        findings.push(Finding::new(
            machine,
            Program::NvidiaPlugin,
            strategy,
            verdict,
        ));
        let written = run::discovery(&site, programs, strategy).await;
        let expected = labels::labels(&state, strategy);
        let verdict = written.map_or_else(Verdict::failed, |seen| labels::judge(&expected, &seen));
        findings.push(Finding::new(machine, Program::NvidiaGfd, strategy, verdict));
    }
    Ok(findings)
}
