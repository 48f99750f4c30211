//! Tests of a pod's devices.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use crate::{
    kubelet,
    node::{Node, ensure_distinct},
    pod::{Container, Pod},
    wait,
};

pub(super) async fn a_pod_gets_one_gpu(node: &mut Node) -> Result<()> {
    gets(node, 1).await
}

pub(super) async fn a_pod_gets_two_gpus(node: &mut Node) -> Result<()> {
    gets(node, 2).await
}

pub(super) async fn a_pod_gets_all_eight_gpus(node: &mut Node) -> Result<()> {
    gets(node, 8).await
}

async fn gets(node: &mut Node, gpus: u32) -> Result<()> {
    let pod = Pod::with(node.name("gets"), gpus);
    node.run(&pod).await?;
    let held = kubelet::held().await?;
    ensure!(held.len() == 1, "one container holds GPUs, not {held:?}");
    Ok(())
}

pub(super) async fn two_containers_get_different_gpus(node: &mut Node) -> Result<()> {
    let pod = Pod::new(node.name("two"))
        .container(Container::new("left", 2))
        .container(Container::new("right", 3));
    let given = node.run(&pod).await?;
    ensure_distinct(given.values())
}

/// The kubelet lets later containers use the devices of an init container.
pub(super) async fn an_init_container_hands_its_gpu_on(node: &mut Node) -> Result<()> {
    let pod = Pod::new(node.name("init"))
        .init(Container::new("before", 2).ends(0, 0))
        .container(Container::new("main", 3));
    let given = node.run(&pod).await?;
    let before = pod.report("before")?.devices(&node.devices()?)?;
    ensure!(before.len() == 2, "the init container had {before:?}");
    let main = given.values().flatten().cloned().collect::<BTreeSet<_>>();
    ensure!(
        before.is_subset(&main),
        "{before:?} of the init container went to nobody: {main:?}"
    );
    Ok(())
}

/// A restartable init container keeps running, so the kubelet does not hand its GPU on.
pub(super) async fn a_sidecar_keeps_its_gpu(node: &mut Node) -> Result<()> {
    let pod = Pod::new(node.name("sidecar"))
        .init(Container::new("before", 1).ends(0, 0))
        .init(Container::new("beside", 1).sidecar())
        .container(Container::new("main", 1));
    let given = node.run(&pod).await?;
    ensure!(given.len() == 2, "two containers last: {given:?}");
    ensure_distinct(given.values())?;
    let before = pod.report("before")?.devices(&node.devices()?)?;
    ensure!(
        given.get("beside") == Some(&before),
        "the sidecar has not got {before:?} of the first init container: {given:?}"
    );
    Ok(())
}

pub(super) async fn a_pod_without_a_request_gets_nothing(node: &mut Node) -> Result<()> {
    let pod = Pod::with(node.name("nothing"), 0);
    let given = node.run(&pod).await?;
    ensure!(given.values().all(BTreeSet::is_empty), "it got {given:?}");
    Ok(())
}

pub(super) async fn a_pod_that_asks_for_too_many_is_refused(node: &mut Node) -> Result<()> {
    let holder = Pod::with(node.name("holder"), 6);
    let before = node.run(&holder).await?;
    let greedy = Pod::with(node.name("greedy"), 3);
    node.place(&greedy)?;
    let (reason, message) = node.refused(&greedy).await?;
    ensure!(
        reason.contains("nvidia.com/gpu") || message.contains("nvidia.com/gpu"),
        "the reason does not name the resource: {reason}: {message}"
    );
    let modest = Pod::with(node.name("modest"), 2);
    let given = node.run(&modest).await?;
    ensure_distinct(before.values().chain(given.values()))?;
    wait::throughout("the refused pod's absence", wait::SHORT, async || {
        let name = greedy.full_name();
        let held = kubelet::held().await?;
        ensure!(held.keys().all(|(pod, _)| *pod != name), "it holds GPUs");
        Ok(())
    })
    .await
}
