//! Cards fail and recover.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use sim::Target;

use crate::{
    kubelet,
    node::{Node, ensure_distinct},
    pod::Pod,
    wait,
};

/// A card falls off the bus under a running pod.
pub(super) async fn a_lost_gpu_is_out_and_its_pod_is_told(node: &mut Node) -> Result<()> {
    let pod = Pod::with(node.name("victim"), 1);
    let given = node.run(&pod).await?;
    let process = pod.process("main")?;
    let lost = given.values().flatten().next().context("it has one card")?;
    says(&pod, lost, "Healthy").await?;
    node.driver.lose(&Target::Uuid(lost.clone()))?;
    node.allocatable_without(&[lost.as_str()]).await?;
    counts(8, 7).await?;
    says(&pod, lost, "Unhealthy").await?;
    ensure!(
        node.verify(&pod).await? == given,
        "the pod's devices changed"
    );
    ensure!(pod.process("main")? == process, "the pod was replaced");
    let others = Pod::with(node.name("others"), 7);
    let rest = node.run(&others).await?;
    ensure_distinct(given.values().chain(rest.values()))?;
    node.remove(&pod).await?;
    node.allocatable_without(&[lost.as_str()]).await?;
    counts(8, 7).await?;
    let late = Pod::with(node.name("late"), 1);
    node.place(&late)?;
    node.refused(&late).await?;
    node.driver.restore(&Target::Uuid(lost.clone()))?;
    node.all_allocatable().await?;
    counts(8, 8).await
}

/// The steps of Kubernetes' own test: down by one, back, down by two, back one at a time.
pub(super) async fn gpus_go_and_come_back_one_by_one(node: &mut Node) -> Result<()> {
    let cards: Vec<String> = node.cards.keys().cloned().collect();
    let [first, second, ..] = cards.as_slice() else {
        anyhow::bail!("the node has too few cards");
    };
    let target = |card: &String| Target::Uuid(card.clone());
    node.driver.lose(&target(first))?;
    node.allocatable_without(&[first]).await?;
    counts(8, 7).await?;
    node.driver.restore(&target(first))?;
    node.all_allocatable().await?;
    counts(8, 8).await?;
    node.driver.lose(&target(first))?;
    node.driver.lose(&target(second))?;
    node.allocatable_without(&[first, second]).await?;
    counts(8, 6).await?;
    let others = Pod::with(node.name("others"), 6);
    let given = node.run(&others).await?;
    let held: BTreeSet<&String> = given.values().flatten().collect();
    ensure!(
        !held.contains(first) && !held.contains(second),
        "a lost card was handed out"
    );
    node.driver.restore(&target(second))?;
    node.allocatable_without(&[first]).await?;
    counts(8, 7).await?;
    node.driver.restore(&target(first))?;
    node.all_allocatable().await?;
    counts(8, 8).await
}

/// Waits until the kubelet counts so many cards in all and so many healthy ones.
async fn counts(total: u32, healthy: u32) -> Result<()> {
    wait::until(
        format_args!("{healthy} of {total} healthy cards"),
        wait::LONG,
        async || {
            let seen = kubelet::counted()?;
            ensure!(seen == (total, healthy), "the kubelet counts {seen:?}");
            Ok(())
        },
    )
    .await
}

/// Waits until the pod's status says this of the device.
async fn says(pod: &Pod, device: &str, health: &str) -> Result<()> {
    wait::until(
        format_args!("status {health} of {device}"),
        wait::LONG,
        async || {
            let seen = kubelet::pod(&pod.full_name()).await?;
            let container = &seen["status"]["containerStatuses"][0];
            let resources = container["allocatedResourcesStatus"].as_array();
            let devices = resources.into_iter().flatten();
            let devices = devices.flat_map(|resource| resource["resources"].as_array());
            let device = |entry: &&Value| entry["resourceID"] == device;
            let entry = devices.flatten().find(device);
            let entry = entry.with_context(|| format!("the pod's status is {container}"))?;
            ensure!(entry["health"] == health, "it says {}", entry["health"]);
            Ok(())
        },
    )
    .await
}
