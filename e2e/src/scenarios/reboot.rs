//! Reboots: everything starts again on the state that a disk keeps.

use anyhow::{Result, bail, ensure};

use crate::{
    agent::Agent,
    kubelet,
    node::{Node, ensure_distinct},
    pod::Pod,
    wait,
};

/// Number of attempts for a reboot, see [`was_late`].
pub(super) const ATTEMPTS: u32 = 4;

pub(super) async fn pods_come_back_with_their_gpus_after_a_reboot(node: &mut Node) -> Result<()> {
    for _ in 0..ATTEMPTS {
        if reboot(node).await? {
            return Ok(());
        }
        node.clear().await?;
    }
    bail!("{ATTEMPTS} times the kubelet admitted pods before it had the agent's list");
}

/// Reboots under two pods. The agent starts first and waits for the kubelet. Returns `false` if the
/// agent was too late.
async fn reboot(node: &mut Node) -> Result<bool> {
    let pods = [2, 3].map(|gpus| Pod::with(node.name("reboot"), gpus).restarting());
    let mut before = Vec::new();
    for pod in &pods {
        before.push((node.run(pod).await?, pod.process("main")?));
    }
    node.power_cut().await?;
    node.agent = Some(Agent::start("first")?);
    node.kubelet.start().await?;
    node.all_allocatable().await?;
    for pod in &pods {
        if was_late(pod).await? {
            return Ok(false);
        }
    }
    for (pod, (given, process)) in pods.iter().zip(&before) {
        node.running(pod).await?;
        ensure!(
            pod.process("main")? != *process,
            "{} was never cut off",
            pod.name
        );
        let now = node.verify(pod).await?;
        ensure!(now == *given, "{} had {given:?} and has {now:?}", pod.name);
    }
    let next = Pod::with(node.name("next"), 3);
    let others = node.run(&next).await?;
    let held = before.iter().flat_map(|(given, _)| given.values());
    ensure_distinct(held.chain(others.values()))?;
    Ok(true)
}

/// True if the agent registered too late for a pod that comes back after a reboot. About 50 ms
/// after the kubelet creates its socket it admits pods, and rejects for good those whose devices
/// are not listed yet. It waits for no plugin, so the agent can be late on a busy machine.
pub(super) async fn was_late(pod: &Pod) -> Result<bool> {
    // The kubelet has not admitted the pod yet; it will find the list.
    let Ok(seen) = kubelet::pod(&pod.full_name()).await else {
        return Ok(false);
    };
    let status = &seen["status"];
    if status["phase"] != "Failed" {
        return Ok(false);
    }
    ensure!(
        status["reason"] == "UnexpectedAdmissionError",
        "{} failed: {status}",
        pod.name
    );
    Ok(true)
}

/// Without an agent the kubelet rejects the pod; the agent's return restores the node.
pub(super) async fn a_reboot_without_an_agent_refuses_the_pod(node: &mut Node) -> Result<()> {
    let pod = Pod::with(node.name("reboot"), 2).restarting();
    node.run(&pod).await?;
    node.power_cut().await?;
    node.kubelet.start().await?;
    let (reason, message) = node.refused(&pod).await?;
    ensure!(reason == "UnexpectedAdmissionError", "{reason}: {message}");
    wait::until("the refused pod's absence", wait::LONG, async || {
        let held = kubelet::held().await?;
        ensure!(held.is_empty(), "pod resources says {held:?}");
        Ok(())
    })
    .await?;
    node.agent = Some(Agent::start("first")?);
    node.all_allocatable().await?;
    let next = Pod::with(node.name("next"), 8);
    node.run(&next).await.map(drop)
}
