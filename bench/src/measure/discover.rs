//! NVIDIA's second program, feature discovery. Ostler has nothing yet to put beside it.

use std::time::Duration;

use anyhow::ensure;
use tokio::time::{Instant, sleep};

use super::{bytes, say};
use crate::{
    binary,
    pair::Pair,
    peer::{Launch, Program, Programs, Site},
    plan::Plan,
    report::{Row, Section},
    running::LIMIT,
    tree::Tree,
    value::Value,
};

/// The labels, as seen from inside.
const OUTPUT: &str = "/run/gfd";

/// How long it is left alone before its memory is looked at.
const SETTLE: Duration = Duration::from_secs(2);

/// Runs it once and again, and once to stay.
pub(super) async fn measure(
    site: &Site,
    programs: &Programs,
    plan: Plan,
) -> anyhow::Result<Section> {
    say("feature discovery")?;
    let launch = Launch::of(programs, Program::NvidiaGfd)?
        .arg("--use-node-feature-api=false")
        .arg(format!("--output-file={OUTPUT}"));
    let once = launch.clone().arg("--oneshot");
    let mut times = Vec::new();
    for round in 0..plan.warmups + plan.starts {
        let desk = site.desk().await?;
        let mut process = desk.start(&once).await?;
        let status = process.ended(LIMIT).await?;
        let took = process.began.elapsed();
        ensure!(
            status.success() && desk.run().join("gfd").is_file(),
            "feature discovery failed: {}",
            process.log()
        );
        times.extend((round >= plan.warmups).then_some(took));
    }
    let memory = stay(site, &launch).await?;
    let row = |name: &str, theirs: Value| {
        let ours = Value::NOT_YET;
        let theirs = Some(theirs);
        Row::new(name, Pair { ours, theirs })
    };
    let mut section = Section::new("Feature discovery (node labels) on dgx-a100");
    section.rows = vec![
        row("one run", Value::times(&times, LIMIT)),
        row("memory, idle (PSS)", bytes(memory)),
        row("binary, file", bytes(binary::size(&launch.binary)?)),
        row(
            "binary, without symbols",
            bytes(binary::loaded(&launch.binary)?),
        ),
    ];
    Ok(section)
}

/// The memory of one that stays.
async fn stay(site: &Site, launch: &Launch) -> anyhow::Result<f64> {
    let desk = site.desk().await?;
    let process = desk.start(launch).await?;
    let began = Instant::now();
    while !desk.run().join("gfd").is_file() {
        ensure!(began.elapsed() < LIMIT, "no labels: {}", process.log());
        sleep(Duration::from_millis(10)).await;
    }
    sleep(SETTLE).await;
    let memory = Tree::of(process.pid)?.memory()?;
    process.stop(LIMIT).await?;
    Ok(memory.total().pss)
}
