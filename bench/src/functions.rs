//! The pure functions behind the calls, without sockets: nanoseconds per call.

use std::{
    hint::black_box,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use model::{Entry, Snapshot};
use pool::Offer;
use probe::protocol::{Message, Report};
use tokio::time::Instant;

use crate::{
    figures::{Figures, Unit},
    peer::Site,
    report::{Row, Section},
    running::RESOURCE,
};

/// The machines on which placement is measured, of 8 and 16 cards.
const PROFILES: [&str; 2] = ["dgx-a100", "hgx2-v100"];

/// How many batches of calls are timed.
const BATCHES: usize = 50;

/// How long a batch should take at least, so that the clock is fine enough.
const BATCH: Duration = Duration::from_millis(2);

/// Times `place::prefer` and `grant::grant` on what the probe sees of simulated machines.
pub(crate) fn measure(ostler: &Path) -> anyhow::Result<Section> {
    let mut section = Section::new("Ostler's functions, without a socket");
    for profile in PROFILES {
        let offer = offer(ostler, profile)?;
        let ids: Vec<String> = offer.units.iter().map(|u| u.id.to_string()).collect();
        let all = ids.len();
        for size in [1, 2, all / 2, all] {
            let times = time(|| place::prefer(&offer, &ids, &[], size));
            let name = format!("place::prefer {size} of {all}, {profile}");
            section.rows.push(Row::own(&name, times));
        }
        for size in [1, all] {
            let times = time(|| grant::grant_ids(&offer, &ids[..size]));
            let name = format!("grant::grant {size} of {all}, {profile}");
            section.rows.push(Row::own(&name, times));
        }
    }
    Ok(section)
}

/// The offer of a machine, made of what a real probe says of it.
fn offer(ostler: &Path, profile: &str) -> anyhow::Result<Arc<Offer>> {
    let site = Site::make(profile)?;
    let mut command = Command::new(ostler);
    command
        .args(["probe", "nvidia", "--no-events", "--host-root"])
        .arg(site.node.host_root())
        .arg("--nvml-library")
        .arg(site.node.driver_library())
        .stdin(Stdio::null());
    let output = command.output()?;
    ensure!(output.status.success(), "{command:?}: {}", output.status);
    let lines = String::from_utf8(output.stdout)?;
    let report = lines.lines().rev().find_map(report);
    let report = report.with_context(|| format!("{command:?} reports nothing"))?;
    let mut snapshot = Snapshot::empty_at(Timestamp::now());
    snapshot.devices = report.devices.into_iter().map(Entry::from).collect();
    snapshot
        .devices
        .sort_by(|a, b| a.device.id.cmp(&b.device.id));
    let offers = pool::offers(nvidia_rules::VENDORS, &Arc::new(snapshot));
    let offer = offers.iter().find(|o| o.resource.as_str() == RESOURCE);
    let offer = offer.with_context(|| format!("{profile} offers no {RESOURCE}"))?;
    ensure!(
        offer.units.len() == site.node.list_gpus()?.len(),
        "cards are missing"
    );
    Ok(Arc::clone(offer))
}

fn report(line: &str) -> Option<Report> {
    match Message::parse_line(line) {
        Ok(Some(Message::Report(report))) => Some(*report),
        _ => None,
    }
}

/// The time of one call, from many batches of calls.
fn time<T>(mut call: impl FnMut() -> T) -> Figures {
    let mut calls: u32 = 1;
    while batch(&mut call, calls) < BATCH && calls < 1 << 24 {
        calls *= 2;
    }
    let once = |_| batch(&mut call, calls).as_secs_f64() / f64::from(calls);
    Figures::of((0..BATCHES).map(once).collect(), Unit::Seconds)
}

fn batch<T>(call: &mut impl FnMut() -> T, calls: u32) -> Duration {
    let began = Instant::now();
    for _ in 0..calls {
        black_box(call());
    }
    began.elapsed()
}
