//! Running NVIDIA's programs on a node and taking down what they say.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use kubelet_api::HEALTHY;

use super::{
    expect::{Offers, Strategy},
    labels::Labels,
};
use crate::{
    differential::{self, Settled},
    peer::{Desk, Launch, Program, Programs, Site},
};

/// How long a program may take to end.
const LIMIT: Duration = Duration::from_secs(30);

/// What all labels begin with.
const PREFIX: &str = "nvidia.com/";

/// What the device plugin did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Offered these, and called these of them unhealthy.
    Offers(Offers, Vec<String>),
    /// Ended, with these words.
    Dies(String),
}

/// Runs the device plugin.
pub(crate) async fn plugin(
    site: &Site,
    programs: &Programs,
    strategy: Strategy,
) -> anyhow::Result<Seen> {
    let desk = site.desk().await?;
    let launch = Launch::of(programs, Program::NvidiaPlugin)?;
    let launch = launch.arg(format!("--mig-strategy={}", strategy.name()));
    let mut process = desk.start(&launch).await?;
    let seen = match differential::settle(&desk, &mut process).await? {
        Settled::Dies(words) => return Ok(Seen::Dies(words)),
        Settled::Idles => Seen::Offers(Offers::new(), Vec::new()),
        Settled::Serves => offers(&desk)?,
    };
    process.stop(LIMIT).await?;
    Ok(seen)
}

fn offers(desk: &Desk) -> anyhow::Result<Seen> {
    let (mut offers, mut sick) = (Offers::new(), Vec::new());
    for registration in desk.kubelet.registrations() {
        let lists = desk.kubelet.device_lists(&registration.resource);
        let list = lists.last().context("the list is gone")?;
        let devices = offers.entry(registration.resource).or_default();
        for device in &list.devices {
            let topology = device.topology.as_ref();
            let node = topology.and_then(|topology| topology.nodes.first());
            let node = node.map(|node| u32::try_from(node.id)).transpose()?;
            devices.insert(device.id.clone(), node);
            if device.health != HEALTHY {
                sick.push(device.id.clone());
            }
        }
    }
    Ok(Seen::Offers(offers, sick))
}

/// Runs the feature discovery once.
pub(crate) async fn discovery(
    site: &Site,
    programs: &Programs,
    strategy: Strategy,
) -> anyhow::Result<Labels> {
    let desk = site.desk().await?;
    let file = desk.folder().join("labels");
    let launch = Launch::of(programs, Program::NvidiaGfd)?
        .arg("--oneshot")
        .arg("--use-node-feature-api=false")
        .arg(format!("--output-file={}", file.display()))
        .arg(format!("--mig-strategy={}", strategy.name()));
    let mut process = desk.start(&launch).await?;
    let status = process.ended(LIMIT).await?;
    ensure!(status.success(), "{status}; it said:\n{}", process.log());
    parse(&fs_err::read_to_string(&file)?)
}

/// Reads labels, `name=value` on each line.
fn parse(text: &str) -> anyhow::Result<Labels> {
    let label = |line: &str| {
        let (name, value) = line.split_once('=')?;
        Some((name.strip_prefix(PREFIX)?.to_owned(), value.to_owned()))
    };
    let labels = text
        .lines()
        .map(|line| label(line).with_context(|| format!("`{line}` is no label")));
    labels.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_labels() {
        let labels = parse("nvidia.com/gpu.count=8\nnvidia.com/cuda.driver.rev=\n").unwrap();
        assert_eq!(labels["gpu.count"], "8");
        assert_eq!(labels["cuda.driver.rev"], "");
    }

    #[test]
    fn refuses_what_is_no_label() {
        let error = parse("nvidia.com/gpu.count\n").unwrap_err();
        assert!(
            error.to_string().contains("`nvidia.com/gpu.count`"),
            "{error}"
        );
    }
}
