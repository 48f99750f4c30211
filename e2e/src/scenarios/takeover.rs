//! Agents one after the other, two at a time, and none.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::{
    agent::{self, Agent},
    kubelet,
    node::{Node, ensure_distinct},
    pod::{Container, Pod},
    wait,
};

/// Time after which the kubelet has forgotten a plugin (five minutes), plus one minute.
const GRACE: Duration = Duration::from_secs(6 * 60);

/// As in a rolling upgrade that starts the new agent before it stops the old one. Kubelets up to
/// 1.36 drop the new one when the old one ends, so the new one has to notice.
pub(super) async fn a_second_instance_takes_over_while_pods_run(node: &mut Node) -> Result<()> {
    let before = Pod::with(node.name("before"), 2);
    let given = node.run(&before).await?;
    let process = before.process("main")?;
    let second = Agent::start("second")?;
    let registered = |sockets: usize| {
        wait::until(
            "the second instance to listen",
            wait::LONG,
            async move || {
                let seen = agent::sockets()?;
                ensure!(seen.len() >= sockets, "there are {seen:?}");
                Ok(())
            },
        )
    };
    registered(2).await?;
    node.all_allocatable().await?;
    if let Some(first) = node.agent.replace(second) {
        first.stop().await?;
    }
    node.all_allocatable().await?;
    wait::throughout("eight allocatable cards", wait::SHORT, async || {
        let count = kubelet::allocatable().await?.len();
        ensure!(count == 8, "there are {count}");
        Ok(())
    })
    .await?;
    ensure!(before.process("main")? == process, "the pod was replaced");
    let after = Pod::with(node.name("after"), 6);
    let others = node.run(&after).await?;
    ensure_distinct(given.values().chain(others.values()))
}

/// The kubelet knows at once that nothing is allocatable; the capacity stays.
pub(super) async fn an_agent_that_stops_leaves_nothing_to_hand_out(node: &mut Node) -> Result<()> {
    stop(node).await?;
    let pod = Pod::with(node.name("early"), 1);
    node.place(&pod)?;
    let (reason, message) = node.refused(&pod).await?;
    ensure!(
        message.contains("nvidia.com/gpu") || reason.contains("nvidia.com/gpu"),
        "the reason does not name the resource: {reason}: {message}"
    );
    Ok(())
}

pub(super) async fn a_finished_pod_stays_finished_without_an_agent(node: &mut Node) -> Result<()> {
    let name = node.name("finished");
    let pod = Pod::new(name).container(Container::new("main", 1).ends(0, 0));
    node.place(&pod)?;
    let finished = async || {
        let seen = kubelet::pod(&pod.full_name()).await?;
        let phase = &seen["status"]["phase"];
        ensure!(phase == "Succeeded", "it is {phase}");
        Ok(())
    };
    wait::until("the pod to finish", wait::LONG, finished).await?;
    stop(node).await?;
    node.kubelet.stop().await?;
    node.kubelet.start().await?;
    wait::until("the pod to be known again", wait::LONG, finished).await?;
    wait::throughout("the finished pod", wait::SHORT * 3, finished).await
}

/// After five minutes the kubelet drops the resource; the agent's return restores it.
pub(super) async fn five_minutes_without_an_agent_and_back(node: &mut Node) -> Result<()> {
    let before = Pod::with(node.name("before"), 2);
    let given = node.run(&before).await?;
    let process = before.process("main")?;
    stop(node).await?;
    none_allocatable().await?;
    tokio::time::sleep(GRACE).await;
    none_allocatable().await?;
    // During the five minutes, the message would be that the devices are not healthy.
    let late = Pod::with(node.name("late"), 1);
    node.place(&late)?;
    let (reason, message) = node.refused(&late).await?;
    ensure!(message.contains("unregistered"), "{reason}: {message}");
    ensure!(before.process("main")? == process, "the pod was replaced");
    node.agent = Some(Agent::start("first")?);
    node.all_allocatable().await?;
    ensure!(
        node.verify(&before).await? == given,
        "the pod's devices changed"
    );
    let after = Pod::with(node.name("after"), 6);
    let others = node.run(&after).await?;
    ensure_distinct(given.values().chain(others.values()))
}

async fn stop(node: &mut Node) -> Result<()> {
    node.stop_agent().await?;
    none_allocatable().await
}

async fn none_allocatable() -> Result<()> {
    wait::until("no allocatable card", wait::LONG, async || {
        let count = kubelet::allocatable().await?.len();
        ensure!(count == 0, "there are {count}");
        Ok(())
    })
    .await
}
