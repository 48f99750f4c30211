//! Measures Ostler, and beside it NVIDIA's programs if they are there, row by row.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::{
    binary,
    figures::{Figures, Unit},
    functions,
    machine::Machine,
    pair::Pair,
    peer::{Launch, Program, Programs, Site},
    plan::{Args, Part},
    report::{Report, Row, Section},
    value::Value,
};

mod deaf;
mod discover;
mod faults;
mod idle;
mod prefer;
mod replicas;
mod sharing;
mod starts;
mod work;

/// The machine that most is measured on: eight GPUs behind NVSwitches.
const PROFILE: &str = "dgx-a100";

/// The machine that placement is measured on too: sixteen GPUs.
const LARGE: &str = "hgx2-v100";

/// Measures everything, or the parts that are wanted.
///
/// # Errors
/// If a program does not do what it must.
pub(crate) async fn measure(
    programs: &Programs,
    machine: Machine,
    args: &Args,
) -> anyhow::Result<Report> {
    let plan = args.plan();
    let plugins = plugins(programs)?;
    let site = Site::make(PROFILE)?;
    let (main, processes) = plugin(&site, programs, &plugins, args).await?;
    let mut sections = vec![main];
    if args.wants(Part::Prefer) {
        for profile in [PROFILE, LARGE] {
            sections.push(prefer::whole(profile, &plugins, plan).await?);
        }
        for profile in [PROFILE, LARGE] {
            sections.push(prefer::shared(profile, &plugins, plan).await?);
        }
    }
    if args.wants(Part::Labels) && programs.nvidia.is_some() {
        sections.push(discover::measure(&site, programs, plan).await?);
    }
    sections.extend(processes);
    if args.wants(Part::Functions) {
        say("functions")?;
        sections.push(functions::measure(&programs.ostler)?);
    }
    sections.retain(|section| !section.rows.is_empty());
    Ok(Report::new(machine, sections))
}

/// The device plugin as a whole; and the memory of each process of ours.
async fn plugin(
    site: &Site,
    programs: &Programs,
    plugins: &Pair<Launch>,
    args: &Args,
) -> anyhow::Result<(Section, Option<Section>)> {
    let plan = args.plan();
    let gpus = site.node.list_gpus()?.len();
    let mut main = Section::new(&format!("Device plugin on {PROFILE}, {gpus} GPUs"));
    let rows = &mut main.rows;
    let mut processes = None;
    if args.wants(Part::Starts) {
        rows.extend(starts::measure(site, plugins, plan).await?);
    }
    if args.wants(Part::Calls) {
        rows.extend(work::measure(site, plugins, plan).await?);
    }
    if args.wants(Part::Faults) {
        rows.extend(faults::measure(plugins, plan).await?);
        rows.push(replicas::measure(plugins, plan).await?);
        rows.push(deaf::measure(plugins, plan).await?);
    }
    if args.wants(Part::Idle) {
        let (idle, each) = idle::measure(site, plugins, plan).await?;
        rows.extend(idle);
        rows.extend(sizes(programs)?);
        processes = Some(each);
    }
    Ok((main, processes))
}

/// The device plugins that take part.
fn plugins(programs: &Programs) -> anyhow::Result<Pair<Launch>> {
    let theirs = programs.nvidia.is_some();
    let theirs = theirs.then(|| Launch::of(programs, Program::NvidiaPlugin));
    Ok(Pair {
        ours: Launch::of(programs, Program::Ostler)?,
        theirs: theirs.transpose()?,
    })
}

/// How large the programs are, with and without the simulator.
fn sizes(programs: &Programs) -> anyhow::Result<Vec<Row>> {
    let plugins = plugins(programs)?.map(|launch| launch.binary);
    let mut rows = file_sizes("binary", &plugins)?;
    if let Some(ours) = &programs.without_sim {
        let plugins = Pair {
            ours: ours.clone(),
            ..plugins
        };
        rows.extend(file_sizes("binary without the simulator", &plugins)?);
    }
    Ok(rows)
}

fn file_sizes(name: &str, files: &Pair<PathBuf>) -> anyhow::Result<Vec<Row>> {
    let size = |size: fn(&Path) -> anyhow::Result<f64>| {
        let sizes = files.as_ref().map(|file| size(file));
        sizes.transpose().map(|sizes| sizes.map(bytes))
    };
    Ok(vec![
        Row::new(&format!("{name}, file"), size(binary::size)?),
        Row::new(&format!("{name}, without symbols"), size(binary::loaded)?),
    ])
}

fn bytes(bytes: f64) -> Value {
    Value::Figures(Figures::one(bytes, Unit::Bytes))
}

/// Tells a person how far it is.
fn say(what: &str) -> io::Result<()> {
    writeln!(io::stderr(), "bench: {what}")
}
