//! Tests of devices becoming free.

use anyhow::{Result, ensure};

use crate::{
    kubelet,
    node::Node,
    pod::{Container, Pod},
    wait,
};

/// The device plugin API has no deallocate call. The kubelet counts a finished pod's devices as
/// free.
pub(super) async fn a_finished_pod_frees_its_gpus(node: &mut Node) -> Result<()> {
    let name = node.name("finishes");
    let pod = Pod::new(name).container(Container::new("main", 8).ends(1, 0));
    node.place(&pod)?;
    wait::until("the pod to finish", wait::LONG, async || {
        let seen = kubelet::pod(&pod.full_name()).await?;
        let phase = &seen["status"]["phase"];
        ensure!(phase == "Succeeded", "it is {phase}");
        let held = kubelet::held().await?;
        ensure!(held.is_empty(), "pod resources says {held:?}");
        Ok(())
    })
    .await?;
    let next = Pod::with(node.name("next"), 8);
    node.run(&next).await?;
    node.remove(&next).await?;
    let last = Pod::with(node.name("last"), 8);
    node.run(&last).await.map(drop)
}

pub(super) async fn a_pod_removed_while_the_kubelet_is_down_frees_its_gpus(
    node: &mut Node,
) -> Result<()> {
    let orphan = Pod::with(node.name("orphan"), 8);
    node.run(&orphan).await?;
    node.kubelet.stop().await?;
    node.withdraw(&orphan)?;
    node.kubelet.start().await?;
    wait::until("the orphan to end", wait::LONG, async || {
        let left = orphan.processes("main")?.len();
        ensure!(left == 0, "it still runs");
        let held = kubelet::held().await?;
        ensure!(held.is_empty(), "pod resources says {held:?}");
        Ok(())
    })
    .await?;
    node.all_allocatable().await?;
    let next = Pod::with(node.name("next"), 8);
    node.run(&next).await.map(drop)
}
