//! Pods on a kubelet whose topology manager requires one NUMA node for all resources of a
//! container.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};

use crate::{
    kubelet::{self, Manner, RESOURCE},
    node::Node,
    numa::Halves,
    pod::{Container, Pod},
    wait,
};

/// NUMA node of each card.
type Nodes = BTreeMap<String, u32>;

pub(super) async fn pods_get_gpus_and_processors_of_one_numa_node(node: &mut Node) -> Result<()> {
    let (nodes, halves) = aligned(node).await?;
    // The processors of the first node are reserved for the system, so only the second node has all
    // that the pod requests.
    let container = Container::new("main", 1).cpus(1);
    let pod = Pod::new(node.name("pinned")).container(container);
    let cards = on_one_node(node, &pod, &nodes).await?;
    ensure!(
        cards.iter().all(|card| nodes[card] == 1),
        "{cards:?} are not where the processors are"
    );
    let cpus = pod.process("main")?.cpus()?;
    ensure!(
        !cpus.is_empty() && cpus.iter().all(|cpu| halves[1].contains(cpu)),
        "it runs on {cpus:?} and not on {:?}",
        halves[1]
    );
    let mut given = Vec::from_iter(cards);
    for gpus in [1, 2, 2] {
        let pod = Pod::with(node.name("aligned"), gpus);
        given.extend(on_one_node(node, &pod, &nodes).await?);
    }
    let distinct: BTreeSet<&String> = given.iter().collect();
    ensure!(
        distinct.len() == given.len(),
        "one of {given:?} is held twice"
    );
    Ok(())
}

pub(super) async fn a_request_that_no_numa_node_can_meet_is_refused(node: &mut Node) -> Result<()> {
    let (nodes, _) = aligned(node).await?;
    // All eight cards are free, four on each node.
    refused(node, 5).await?;
    let whole = Pod::with(node.name("whole"), 4);
    on_one_node(node, &whole, &nodes).await?;
    let half = Pod::with(node.name("half"), 3);
    let cards = on_one_node(node, &half, &nodes).await?;
    node.remove(&whole).await?;
    // Five cards are free, and no node has more than four.
    refused(node, 5).await?;
    let rest = Pod::with(node.name("rest"), 4);
    let others = on_one_node(node, &rest, &nodes).await?;
    ensure!(others.is_disjoint(&cards), "{others:?} and {cards:?}");
    Ok(())
}

/// Starts a kubelet that aligns, with two nodes of four cards each. Returns the nodes of the cards
/// and the processors of the nodes.
async fn aligned(node: &mut Node) -> Result<(Nodes, Halves)> {
    let mut nodes = Nodes::new();
    for (at, gpu) in node.driver.list_gpus()?.into_iter().enumerate() {
        let file = format!("sys/bus/pci/devices/{}/numa_node", gpu.pci);
        let near = u32::from(at >= 4);
        fs_err::write(node.driver.host_root().join(file), format!("{near}\n"))?;
        nodes.insert(gpu.uuid, near);
    }
    node.replace_kubelet(Manner::Aligned).await?;
    wait::until("the kubelet to know the nodes", wait::LONG, async || {
        let seen = kubelet::nodes(RESOURCE).await?;
        ensure!(seen == nodes, "it knows {seen:?}");
        Ok(())
    })
    .await?;
    let halves = node.kubelet.halves().context("the kubelet aligns")?;
    Ok((nodes, halves.clone()))
}

/// Runs a pod and checks that its cards are on one node. Returns the cards.
async fn on_one_node(node: &Node, pod: &Pod, nodes: &Nodes) -> Result<BTreeSet<String>> {
    let given = node.run(pod).await?;
    let cards: BTreeSet<String> = given.into_values().flatten().collect();
    let on: BTreeSet<u32> = cards.iter().map(|card| nodes[card]).collect();
    ensure!(on.len() == 1, "{} got {cards:?} of nodes {on:?}", pod.name);
    Ok(cards)
}

/// Requests more cards than any node has, but no more than exist.
async fn refused(node: &mut Node, gpus: u32) -> Result<()> {
    let pod = Pod::with(node.name("across"), gpus);
    node.place(&pod)?;
    let (reason, message) = node.refused(&pod).await?;
    ensure!(
        reason == "TopologyAffinityError",
        "{gpus} GPUs were refused with {reason}: {message}"
    );
    node.remove(&pod).await
}
