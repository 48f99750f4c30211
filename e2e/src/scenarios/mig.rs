//! MIG changes of a card while pods run on the others.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use sim::DeviceTarget;
use tokio::time::Instant;

use crate::{
    kubelet::RESOURCE,
    node::Node,
    pod::{Container, Pod},
    say::say,
};

const SMALL: &str = "nvidia.com/mig-1g.5gb";
const LARGE: &str = "nvidia.com/mig-3g.20gb";

pub(super) async fn a_gpu_cut_on_the_live_node_reaches_pods(node: &mut Node) -> Result<()> {
    let whole = Pod::with(node.name("whole"), 4);
    let before = node.run(&whole).await?;
    let process = whole.process("main")?;
    let held: BTreeSet<&String> = before.values().flatten().collect();
    let mut free = node.cards.keys().filter(|card| !held.contains(card));
    let card = free.next().context("four cards are free")?.clone();
    let target = DeviceTarget::Uuid(card.clone());

    let begun = Instant::now();
    node.driver.set_mig(&target, true)?;
    for profile in ["3g.20gb", "1g.5gb", "1g.5gb"] {
        node.driver.add_mig(&target, profile)?;
    }
    node.offers(LARGE, 1).await?;
    node.offers(SMALL, 2).await?;
    node.allocatable_without(&[card.as_str()]).await?;
    say(format_args!(
        "      a new layout after {:.1?}",
        begun.elapsed()
    ));

    // Each container tries the capabilities of all of them.
    let rights: BTreeSet<u32> = node
        .devices()?
        .into_values()
        .flatten()
        .map(|n| n.1)
        .collect();
    let small = |name: String| {
        let container = Container::new("main", 1).of(SMALL);
        Pod::new(name).container(container.tries(rights.iter().copied()))
    };
    let pods = ["left", "right"].map(|stem| small(node.name(stem)));
    let mut given = BTreeSet::new();
    for pod in &pods {
        given.extend(node.run(pod).await?.into_values().flatten());
    }
    ensure!(given.len() == 2, "two pods have {given:?}");

    for pod in &pods {
        node.remove(pod).await?;
    }
    let begun = Instant::now();
    node.driver.set_mig(&target, false)?;
    node.offers(SMALL, 0).await?;
    node.offers(LARGE, 0).await?;
    node.all_allocatable().await?;
    say(format_args!(
        "      the card is whole after {:.1?}",
        begun.elapsed()
    ));
    ensure!(whole.process("main")? == process, "the pod was replaced");
    ensure!(node.verify(&whole).await? == before, "its devices changed");
    let again = Pod::of(node.name("again"), RESOURCE, 4);
    node.run(&again).await.map(drop)
}
