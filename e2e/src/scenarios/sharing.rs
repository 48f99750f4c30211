//! Several pods on one card.

use anyhow::{Result, ensure};

use crate::{agent::Agent, kubelet, node::Node, pod::Pod};

/// Resource of the card that is shared.
const SLICE: &str = "nvidia.com/slice";

/// First card in two units, the others whole.
const CONFIG: &str = "pools:
  - {name: shared, select: {index: 0}, resource: nvidia.com/slice, sharing: {replicas: 2}}
  - {name: whole, resource: nvidia.com/gpu}
";

/// The same in NVIDIA's format, with one unit at most for each container.
const NVIDIA: &str = "version: v1
sharing:
  timeSlicing:
    failRequestsGreaterThanOne: true
    resources:
    - {name: nvidia.com/gpu, replicas: 2, devices: [\"0\"], rename: nvidia.com/slice}
";

pub(super) async fn two_pods_share_one_gpu(node: &mut Node) -> Result<()> {
    node.replace_agent(|| Agent::configured(CONFIG)).await?;
    share(node).await
}

pub(super) async fn the_plugin_of_nvidias_name_shares_as_its_config_says(
    node: &mut Node,
) -> Result<()> {
    node.replace_agent(|| Agent::nvidia(NVIDIA)).await?;
    node.offers(SLICE, 2).await?;
    let greedy = Pod::of(node.name("greedy"), SLICE, 2);
    node.place(&greedy)?;
    let (reason, message) = node.refused(&greedy).await?;
    let said = format!("{reason}: {message}");
    for word in ["failRequestsGreaterThanOne", "the maximum is 1", SLICE] {
        ensure!(said.contains(word), "no {word} in {said}");
    }
    node.remove(&greedy).await?;
    share(node).await
}

/// Two pods get the first card, a third one is rejected, and one that requests a whole card gets
/// another card.
async fn share(node: &mut Node) -> Result<()> {
    node.offers(SLICE, 2).await?;
    node.offers(kubelet::RESOURCE, 7).await?;
    let first = &node.driver.list_gpus()?[0].uuid;
    let pods = ["left", "right"].map(|stem| Pod::of(node.name(stem), SLICE, 1));
    for pod in &pods {
        let given = node.run(pod).await?;
        let mut cards = given.values().flatten();
        ensure!(cards.all(|card| card == first), "a share of {given:?}");
    }
    let third = Pod::of(node.name("third"), SLICE, 1);
    node.place(&third)?;
    let (reason, message) = node.refused(&third).await?;
    ensure!(
        format!("{reason}: {message}").contains(SLICE),
        "the reason does not name the resource: {reason}: {message}"
    );
    let whole = Pod::with(node.name("whole"), 7);
    let given = node.run(&whole).await?;
    let mut cards = given.values().flatten();
    ensure!(cards.all(|card| card != first), "the shared card is whole");
    for pod in &pods {
        node.verify(pod).await?;
    }
    Ok(())
}
