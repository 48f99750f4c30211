//! Measures Ostler, and beside it NVIDIA's programs if they are there, row by row.

use std::{
    io::{self, Write as _},
    path::Path,
};

use crate::{
    binary,
    figures::{Figures, Unit},
    functions,
    machine::Machine,
    pair::Pair,
    peer::{Launch, Program, Programs, Site},
    plan::Plan,
    report::{Report, Row, Section},
    value::Value,
};

mod discover;
mod faults;
mod idle;
mod prefer;
mod starts;
mod work;

/// The machine that most is measured on: eight GPUs behind NVSwitches.
const PROFILE: &str = "dgx-a100";

/// The machine that placement is measured on too: sixteen GPUs.
const LARGE: &str = "hgx2-v100";

/// Measures everything.
///
/// # Errors
/// If a program does not do what it must.
pub(crate) async fn measure(
    programs: &Programs,
    machine: Machine,
    plan: Plan,
) -> anyhow::Result<Report> {
    let plugins = plugins(programs)?;
    let site = Site::make(PROFILE)?;
    let gpus = site.node.gpus()?.len();
    let mut main = Section::new(&format!("Device plugin on {PROFILE}, {gpus} GPUs"));
    main.rows
        .extend(starts::measure(&site, &plugins, plan).await?);
    main.rows
        .extend(work::measure(&site, &plugins, plan).await?);
    main.rows.extend(faults::measure(&plugins, plan).await?);
    let (rows, processes) = idle::measure(&site, &plugins, plan).await?;
    main.rows.extend(rows);
    main.rows.extend(sizes(&plugins)?);
    let mut sections = vec![main];
    for profile in [PROFILE, LARGE] {
        sections.push(prefer::whole(profile, &plugins, plan).await?);
    }
    for profile in [PROFILE, LARGE] {
        sections.push(prefer::shared(profile, &plugins, plan).await?);
    }
    if programs.nvidia.is_some() {
        sections.push(discover::measure(&site, programs, plan).await?);
    }
    sections.push(processes);
    say("functions")?;
    sections.push(functions::measure(&programs.ostler)?);
    Ok(Report::new(machine, sections))
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

fn sizes(plugins: &Pair<Launch>) -> anyhow::Result<Vec<Row>> {
    let size = |size: fn(&Path) -> anyhow::Result<f64>| {
        let sizes = plugins.as_ref().map(|launch| size(&launch.binary));
        sizes.transpose().map(|sizes| sizes.map(bytes))
    };
    Ok(vec![
        Row::new("binary, file", size(binary::size)?),
        Row::new("binary, without symbols", size(binary::loaded)?),
    ])
}

fn bytes(bytes: f64) -> Value {
    Value::Figures(Figures::one(bytes, Unit::Bytes))
}

/// Tells a person how far it is.
fn say(what: &str) -> io::Result<()> {
    writeln!(io::stderr(), "bench: {what}")
}
