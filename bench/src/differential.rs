//! `bench differential`: NVIDIA's device plugin and Ostler on the same simulated nodes, told the
//! same, asked the same; every difference is explained by a documented row, or is an error.

mod ask;
mod case;
mod compare;
mod fact;
mod known;
mod node;
mod record;
mod recording;
mod report;
mod watch;

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::ensure;
use clap::Parser;

use self::{
    case::{Case, Ours},
    known::Known,
    recording::Recording,
    report::{Done, Report},
};
use crate::{
    binary,
    peer::{Programs, Site},
};

pub(crate) use self::{
    node::profiles,
    watch::{Settled, settle},
};

/// The source tree, whose documents say which differences are known.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Compare Ostler with NVIDIA's device plugin, case by case
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Only cases whose name contains one of these [default: all]
    #[arg(value_name = "PART")]
    parts: Vec<String>,

    /// Keep the recordings of NVIDIA's plugin in this folder
    #[arg(long, value_name = "DIR", conflicts_with = "replay")]
    record: Option<PathBuf>,

    /// Take the recordings of NVIDIA's plugin from this folder and do not run it
    #[arg(long, value_name = "DIR")]
    replay: Option<PathBuf>,

    /// The folder with nvidia-device-plugin; its name ends with the version
    #[arg(long, value_name = "DIR", required_unless_present_any = ["replay", "list"])]
    nvidia: Option<PathBuf>,

    /// Ostler [default: the one that `cargo build --release` makes]
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Print the names of the cases and do nothing
    #[arg(long)]
    list: bool,

    /// Print what Ostler did as JSON, too
    #[arg(long)]
    show: bool,
}

/// Runs the cases and prints the report.
///
/// # Errors
/// If there is a difference that nothing explains, or a case that cannot be run.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let mut cases = Case::all()?;
    let count = cases.len();
    let wanted =
        |case: &Case| args.parts.is_empty() || args.parts.iter().any(|p| case.name.contains(p));
    cases.retain(wanted);
    ensure!(
        !cases.is_empty(),
        "there is no such case; --list shows them"
    );
    let mut out = io::stdout();
    if args.list {
        for case in &cases {
            writeln!(out, "{}", case.name)?;
        }
        return Ok(());
    }
    let ostler = match &args.binary {
        Some(binary) => binary.clone(),
        None => binary::build()?,
    };
    let nvidia = args.nvidia.clone();
    let programs = Programs {
        ostler,
        without_sim: None,
        nvidia,
    };
    let known = Known::read(Path::new(ROOT))?;
    let complete = cases.len() == count;
    let mut done = Vec::new();
    for case in cases {
        writeln!(io::stderr(), "differential: {}", case.name)?;
        let result = one(args, &case, &programs, &known).await;
        let result = result.unwrap_or_else(|error| Done::Failed(format!("{error:#}")));
        done.push((case.name, result));
    }
    let report = Report::new(done, &known, complete);
    let text = if args.json {
        report.json()?
    } else {
        report.text()
    };
    writeln!(out, "{}", text.trim_end())?;
    ensure!(
        !report.fails(),
        "there are differences that nothing explains"
    );
    Ok(())
}

/// Runs one case.
async fn one(args: &Args, case: &Case, programs: &Programs, known: &Known) -> anyhow::Result<Done> {
    let upstream = match &args.replay {
        Some(folder) => Recording::read(folder, &case.name)?,
        None => record::upstream(&Site::of(&case.machine()?)?, case, programs).await?,
    };
    if let Some(folder) = &args.record {
        upstream.write(folder, &case.name)?;
    }
    if case.ours == Ours::Pending {
        return Ok(Done::Pending);
    }
    let site = Site::of(&case.machine()?)?;
    let Some(ours) = record::ours(&site, case, programs).await? else {
        return Ok(Done::Pending);
    };
    if args.show {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&ours)?)?;
    }
    Ok(Done::Compared(compare::compare(
        case, &upstream, &ours, known,
    )))
}
