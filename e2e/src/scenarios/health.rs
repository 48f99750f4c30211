//! Tests of cards that fail and recover.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use sim::{DeviceTarget, EccKind};

use tokio::time::{Instant, sleep};

use crate::{
    agent::{self, Agent},
    kubelet::{self, RESOURCE},
    node::{Given, Node, ensure_distinct},
    pod::Pod,
    process::Id,
    say::say,
    wait,
};

/// An XID after which a card must be reset: an uncorrected memory error.
const FATAL: u64 = 48;

/// A card falls off the bus under a running pod.
pub(super) async fn a_lost_gpu_is_out_and_its_pod_is_told(node: &mut Node) -> Result<()> {
    let pod = Pod::with(node.name("victim"), 1);
    let given = node.run(&pod).await?;
    let process = pod.process("main")?;
    let lost = given.values().flatten().next().context("it has one card")?;
    says(&pod, lost, "Healthy").await?;
    node.driver.lose_cards(&DeviceTarget::Uuid(lost.clone()))?;
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
    node.driver
        .restore_cards(&DeviceTarget::Uuid(lost.clone()))?;
    node.all_allocatable().await?;
    counts(8, 8).await
}

/// Steps of Kubernetes' own test: one card fails, recovers, two fail, recover one at a time.
pub(super) async fn gpus_go_and_come_back_one_by_one(node: &mut Node) -> Result<()> {
    let cards: Vec<String> = node.cards.keys().cloned().collect();
    let [first, second, ..] = cards.as_slice() else {
        anyhow::bail!("the node has too few cards");
    };
    let target = |card: &String| DeviceTarget::Uuid(card.clone());
    node.driver.lose_cards(&target(first))?;
    node.allocatable_without(&[first]).await?;
    counts(8, 7).await?;
    node.driver.restore_cards(&target(first))?;
    node.all_allocatable().await?;
    counts(8, 8).await?;
    node.driver.lose_cards(&target(first))?;
    node.driver.lose_cards(&target(second))?;
    node.allocatable_without(&[first, second]).await?;
    counts(8, 6).await?;
    let others = Pod::with(node.name("others"), 6);
    let given = node.run(&others).await?;
    let held: BTreeSet<&String> = given.values().flatten().collect();
    ensure!(
        !held.contains(first) && !held.contains(second),
        "a lost card was handed out"
    );
    node.driver.restore_cards(&target(second))?;
    node.allocatable_without(&[first]).await?;
    counts(8, 7).await?;
    node.driver.restore_cards(&target(first))?;
    node.all_allocatable().await?;
    counts(8, 8).await
}

/// A card breaks under one pod and beside another. Both pods go on, and so does the agent.
pub(super) async fn pods_go_on_while_a_gpu_breaks_and_heals(node: &mut Node) -> Result<()> {
    let pods = ["victim", "neighbour"].map(|stem| Pod::with(node.name(stem), 1));
    let mut before = Vec::new();
    for pod in &pods {
        before.push((node.run(pod).await?, pod.process("main")?));
    }
    let broken = before[0].0.values().flatten().next();
    let broken = broken.context("it has one card")?.clone();
    let target = DeviceTarget::Uuid(broken.clone());
    for fault in ["a loss", "an XID", "an ECC error"] {
        let agent = node.agent.as_ref().and_then(Agent::pid);
        match fault {
            "a loss" => node.driver.lose_cards(&target)?,
            "an XID" => node.driver.raise_xid(&target, FATAL)?,
            _ => node.driver.count_ecc_error(&target, EccKind::Uncorrected)?,
        }
        is_out(node, &pods, &broken).await.context(fault)?;
        reset(node, &broken).await.context(fault)?;
        node.all_allocatable().await.context(fault)?;
        counts(8, 8).await?;
        says(&pods[0], &broken, "Healthy").await?;
        for (pod, (given, process)) in pods.iter().zip(&before) {
            same(node, pod, given, *process).await.context(fault)?;
        }
        let now = node.agent.as_ref().and_then(Agent::pid);
        ensure!(now == agent, "the agent was replaced");
    }
    let all = Pod::with(node.name("rest"), 6);
    node.run(&all).await.map(drop)
}

/// With the default hold-down, for a card without history.
pub(super) async fn a_lost_gpu_is_back_by_itself(node: &mut Node) -> Result<()> {
    let config = "health: {stateFile: off}";
    node.replace_agent(|| Agent::configured(config)).await?;
    node.all_allocatable().await?;
    let card = node.cards.keys().next().context("it has cards")?.clone();
    let target = DeviceTarget::Uuid(card.clone());
    node.driver.lose_cards(&target)?;
    node.allocatable_without(&[card.as_str()]).await?;
    node.driver.restore_cards(&target)?;
    let begun = Instant::now();
    node.all_allocatable().await?;
    let time = begun.elapsed();
    say(format_args!("      a lost card is back after {time:.1?}"));
    Ok(())
}

/// Checks that the first pod's card is unhealthy and the second pod's is not.
async fn is_out(node: &Node, pods: &[Pod; 2], broken: &str) -> Result<()> {
    node.allocatable_without(&[broken]).await?;
    counts(8, 7).await?;
    says(&pods[0], broken, "Unhealthy").await?;
    let given = node.verify(&pods[1]).await?;
    let other = given.values().flatten().next();
    says(&pods[1], other.context("it has one card")?, "Healthy").await
}

/// An XID is an event, so after a restart only the agent's state file keeps the card out.
pub(super) async fn a_broken_gpu_stays_out_over_restarts(node: &mut Node) -> Result<()> {
    let card = node.cards.keys().next().context("it has cards")?.clone();
    node.driver
        .raise_xid(&DeviceTarget::Uuid(card.clone()), FATAL)?;
    let outcome = stays_out(node, &card).await;
    let cured = reset(node, &card).await;
    outcome.and(cured)?;
    node.all_allocatable().await?;
    // Saved state must not keep a recovered card out either.
    node.stop_agent().await?;
    node.agent = Some(Agent::start("first")?);
    node.all_allocatable().await
}

async fn stays_out(node: &mut Node, card: &str) -> Result<()> {
    node.allocatable_without(&[card]).await?;
    counts(8, 7).await?;
    let from = kubelet::log_length()?;
    node.stop_agent().await?;
    node.agent = Some(Agent::start("first")?);
    node.allocatable_without(&[card]).await?;
    if let Some(agent) = node.agent.take() {
        agent.kill().await?;
    }
    node.agent = Some(Agent::start("first")?);
    node.allocatable_without(&[card]).await?;
    node.kubelet.stop().await?;
    node.kubelet.start().await?;
    node.allocatable_without(&[card]).await?;
    wait::throughout("seven allocatable cards", wait::SHORT, async || {
        let count = kubelet::allocatable().await?.len();
        ensure!(count == 7, "there are {count}");
        Ok(())
    })
    .await?;
    let counts = kubelet::counts(RESOURCE, from)?;
    ensure!(
        counts.iter().all(|(_, healthy)| *healthy < 8),
        "the kubelet was told of eight healthy cards: {counts:?}"
    );
    let told = agent::ask(&["health", card]).await?;
    ensure!(told.contains("XID 48"), "the cause is not told: {told}");
    Ok(())
}

/// The cordon outlives a restart of the agent.
pub(super) async fn a_cordoned_gpu_is_out_until_it_is_uncordoned(node: &mut Node) -> Result<()> {
    let pod = Pod::with(node.name("keeper"), 1);
    let given = node.run(&pod).await?;
    let process = pod.process("main")?;
    let card = given.values().flatten().next();
    let card = card.context("it has one card")?.clone();
    agent::ask(&["cordon", &card, "--reason", "a new fan"]).await?;
    let outcome = stays_cordoned(node, &card).await;
    let given_back = agent::ask(&["uncordon", &card]).await;
    outcome.and(given_back)?;
    node.all_allocatable().await?;
    counts(8, 8).await?;
    same(node, &pod, &given, process).await
}

async fn stays_cordoned(node: &mut Node, card: &str) -> Result<()> {
    node.allocatable_without(&[card]).await?;
    counts(8, 7).await?;
    let told = agent::ask(&["health", card]).await?;
    for words in ["Maintenance", "a new fan"] {
        ensure!(told.contains(words), "no `{words}` in {told}");
    }
    node.stop_agent().await?;
    node.agent = Some(Agent::start("first")?);
    node.allocatable_without(&[card]).await?;
    let greedy = Pod::with(node.name("greedy"), 8);
    node.place(&greedy)?;
    node.refused(&greedy).await.map(drop)
}

/// For a change that the driver refuses while a process has the card open. The card is offered
/// again without a further order.
pub(super) async fn a_released_gpu_is_open_nowhere_and_can_be_cut(node: &mut Node) -> Result<()> {
    let pod = Pod::with(node.name("bystander"), 1);
    let given = node.run(&pod).await?;
    let held: BTreeSet<&String> = given.values().flatten().collect();
    let mut free = node.cards.keys().filter(|card| !held.contains(card));
    let card = free.next().context("seven cards are free")?.clone();
    agent::ask(&["release", &card, "--for", "5s"]).await?;
    for holders in node.driver.holders()? {
        let is_it = holders.gpu == card;
        ensure!(holders.pids.is_empty() == is_it, "open: {holders:?}");
    }
    node.allocatable_without(&[card.as_str()]).await?;
    let target = DeviceTarget::Uuid(card.clone());
    node.driver.set_mig(&target, true)?;
    node.driver.add_mig(&target, "7g.40gb")?;
    node.offers("nvidia.com/mig-7g.40gb", 1).await?;
    node.allocatable_without(&[card.as_str()]).await?;
    ensure!(node.verify(&pod).await? == given, "its devices changed");
    Ok(())
}

/// Resets a card. The card is away long enough to be noticed, and comes back.
async fn reset(node: &Node, card: &str) -> Result<()> {
    let target = DeviceTarget::Uuid(card.to_owned());
    node.driver.lose_cards(&target)?;
    wait::until("the agent to miss the card", wait::LONG, async || {
        let told = agent::ask(&["health", card]).await?;
        ensure!(told.contains("Lost"), "it says {told}");
        Ok(())
    })
    .await?;
    sleep(wait::SHORT).await;
    Ok(node
        .driver
        .reset_cards(&target, std::time::Duration::ZERO)?)
}

/// Checks that a pod has the same devices and the same process.
async fn same(node: &Node, pod: &Pod, given: &Given, process: Id) -> Result<()> {
    let now = node.verify(pod).await?;
    ensure!(now == *given, "{} had {given:?} and has {now:?}", pod.name);
    ensure!(pod.process("main")? == process, "{} was replaced", pod.name);
    Ok(())
}

/// Waits until the kubelet counts `total` cards and `healthy` healthy ones.
async fn counts(total: u32, healthy: u32) -> Result<()> {
    wait::until(
        format_args!("{healthy} of {total} healthy cards"),
        wait::LONG,
        async || {
            let seen = kubelet::counted(RESOURCE)?;
            ensure!(seen == (total, healthy), "the kubelet counts {seen:?}");
            Ok(())
        },
    )
    .await
}

/// Waits until the pod's status has this health for the device.
pub(super) async fn says(pod: &Pod, device: &str, health: &str) -> Result<()> {
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
