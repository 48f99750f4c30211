//! Cards of one node under different resource names, and changes of the pools while pods run.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use tokio::time::Instant;

use crate::{
    agent::{Agent, configure},
    kubelet::RESOURCE,
    node::{Node, behind},
    pod::Pod,
    say::say,
};

const SLICE: &str = "nvidia.com/slice";
const LARGE: &str = "nvidia.com/large";

/// First two cards in units, third under a name of its own, the others under `rest`.
fn config(replicas: u32, rest: &str) -> String {
    format!(
        "pools:
  - {{name: shared, select: {{index: [0, 1]}}, resource: {SLICE}, sharing: {{replicas: {replicas}}}}}
  - {{name: large, select: {{index: 2}}, resource: {LARGE}}}
  - {{name: rest, resource: {rest}}}
"
    )
}

pub(super) async fn exclusive_and_shared_gpus_are_on_one_node(node: &mut Node) -> Result<()> {
    node.replace_agent(|| Agent::configured(&config(4, RESOURCE)))
        .await?;
    let mut pools = Vec::new();
    for (resource, units, wanted) in [(SLICE, 8, 2), (LARGE, 1, 1), (RESOURCE, 5, 3)] {
        let cards = behind(&node.offers(resource, units).await?);
        let pod = Pod::of(node.name("guest"), resource, wanted);
        let given = node.run(&pod).await?;
        let given: BTreeSet<String> = given.into_values().flatten().collect();
        ensure!(
            given.is_subset(&cards),
            "{given:?} of {resource}: {cards:?}"
        );
        pools.push(cards);
    }
    let all: BTreeSet<&String> = pools.iter().flatten().collect();
    let sum: usize = pools.iter().map(BTreeSet::len).sum();
    ensure!(
        (all.len(), sum) == (8, 8),
        "each card is in one pool: {pools:?}"
    );
    Ok(())
}

/// More units, then another name for some cards.
pub(super) async fn a_new_config_reaches_the_kubelet_and_leaves_pods_alone(
    node: &mut Node,
) -> Result<()> {
    let other = "nvidia.com/other";
    node.replace_agent(|| Agent::configured(&config(2, RESOURCE)))
        .await?;
    let mut pods = Vec::new();
    for (resource, units) in [(SLICE, 4), (LARGE, 1), (RESOURCE, 5)] {
        node.offers(resource, units).await?;
        let pod = Pod::of(node.name("guest"), resource, 1);
        let given = node.run(&pod).await?;
        let process = pod.process("main")?;
        pods.push((pod, given, process));
    }
    let begun = Instant::now();
    configure(&config(5, RESOURCE))?;
    node.offers(SLICE, 10).await?;
    say(format_args!(
        "      more units after {:.1?}",
        begun.elapsed()
    ));
    let begun = Instant::now();
    configure(&config(5, other))?;
    node.offers(other, 5).await?;
    node.offers(RESOURCE, 0).await?;
    say(format_args!(
        "      another name after {:.1?}",
        begun.elapsed()
    ));
    node.offers(LARGE, 1).await?;
    for (pod, given, process) in &pods {
        ensure!(
            pod.process("main")? == *process,
            "{} was replaced",
            pod.name
        );
        let now = node.verify(pod).await?;
        ensure!(now == *given, "it had {given:?} and has {now:?}");
    }
    let late = Pod::of(node.name("late"), SLICE, 7);
    node.run(&late).await.map(drop)
}
