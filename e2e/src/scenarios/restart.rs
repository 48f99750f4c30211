//! Restarts of containers, kubelet and agent: pods keep their devices and go on.

use anyhow::{Result, ensure};
use rustix::process::Signal;

use crate::{
    agent::{self, Agent},
    kubelet,
    node::{Given, Node, ensure_distinct},
    pod::Pod,
    process::{self, Id},
    wait,
};

/// A pod before an event, to compare with afterwards.
#[derive(Debug)]
struct Before {
    pod: Pod,
    process: Id,
    given: Given,
}

// === impl Before ===

impl Before {
    async fn start(node: &mut Node, gpus: u32) -> Result<Self> {
        let pod = Pod::with(node.name("before"), gpus).restarting();
        let given = node.run(&pod).await?;
        let process = pod.process("main")?;
        Ok(Self {
            pod,
            process,
            given,
        })
    }

    /// Checks that process and devices are the same, and that a new pod gets other devices.
    async fn check(&self, node: &mut Node) -> Result<()> {
        node.all_allocatable().await?;
        wait::throughout("the pod", wait::SHORT, async || {
            let now = self.pod.process("main")?;
            ensure!(now == self.process, "its process was replaced");
            Ok(())
        })
        .await?;
        let given = node.verify(&self.pod).await?;
        ensure!(
            given == self.given,
            "it had {:?} and has {given:?}",
            self.given
        );
        let next = Pod::with(node.name("after"), 2);
        let others = node.run(&next).await?;
        ensure_distinct(self.given.values().chain(others.values()))?;
        node.remove(&next).await
    }
}

/// Kills the container's process and waits until the kubelet has restarted the container.
async fn restart_container(node: &Node, pod: &Pod) -> Result<()> {
    let old = pod.process("main")?;
    process::send(old.pid, Signal::KILL)?;
    wait::until("the container to restart", wait::LONG, async || {
        ensure!(pod.process("main")? != old, "it has not ended yet");
        ensure!(pod.starts("main")? > 1, "it has one log");
        pod.report("main").map(drop)
    })
    .await?;
    node.running(pod).await
}

pub(super) async fn a_container_that_restarts_keeps_its_gpu(node: &mut Node) -> Result<()> {
    let before = Before::start(node, 2).await?;
    restart_container(node, &before.pod).await?;
    let given = node.verify(&before.pod).await?;
    ensure!(
        given == before.given,
        "it had {:?} and has {given:?}",
        before.given
    );
    let next = Pod::with(node.name("after"), 6);
    let others = node.run(&next).await?;
    ensure_distinct(given.values().chain(others.values()))
}

pub(super) async fn pods_outlive_a_kubelet_restart(node: &mut Node) -> Result<()> {
    let before = Before::start(node, 3).await?;
    node.kubelet.stop().await?;
    node.kubelet.start().await?;
    before.check(node).await?;
    node.kubelet.kill().await?;
    node.kubelet.start().await?;
    before.check(node).await
}

/// Kubelet 1.34 may take the ended container for the running one. It then admits the pod again, and
/// kills it if the agent's list comes too late, so the test is repeated there.
pub(super) async fn a_container_restart_and_a_kubelet_restart_keep_the_gpu(
    node: &mut Node,
) -> Result<()> {
    let attempts = if kubelet::minor().await? > 34 { 1 } else { 4 };
    for _ in 1..attempts {
        let before = restart_both(node).await?;
        let name = before.pod.full_name();
        let status = wait::until("the kubelet to judge the pod", wait::LONG, async || {
            let status = kubelet::pod(&name).await?["status"].take();
            let is_judged = status["phase"] == "Running" || status["phase"] == "Failed";
            ensure!(is_judged, "it is {}", status["phase"]);
            Ok(status)
        })
        .await?;
        if status["reason"] != "UnexpectedAdmissionError" {
            return before.check(node).await;
        }
        node.clear().await?;
    }
    restart_both(node).await?.check(node).await
}

/// Restarts a container, then the kubelet. Returns the pod as it was in between.
async fn restart_both(node: &mut Node) -> Result<Before> {
    let before = Before::start(node, 2).await?;
    restart_container(node, &before.pod).await?;
    let process = before.pod.process("main")?;
    node.kubelet.stop().await?;
    node.kubelet.start().await?;
    node.all_allocatable().await?;
    Ok(Before { process, ..before })
}

pub(super) async fn pods_outlive_an_agent_restart(node: &mut Node) -> Result<()> {
    let before = Before::start(node, 3).await?;
    node.stop_agent().await?;
    ensure!(
        agent::sockets()?.is_empty(),
        "sockets are left: {:?}",
        agent::sockets()?
    );
    node.agent = Some(Agent::start("first")?);
    before.check(node).await
}

pub(super) async fn pods_outlive_a_killed_agent(node: &mut Node) -> Result<()> {
    let before = Before::start(node, 3).await?;
    let running = agent::processes()?.len();
    ensure!(
        running > 1,
        "an agent and its probe run, not {running} processes"
    );
    if let Some(agent) = node.agent.take() {
        agent.kill().await?;
    }
    wait::until("the probe to end with its agent", wait::LONG, async || {
        let left = agent::processes()?.len();
        ensure!(left == 0, "{left} processes are left");
        Ok(())
    })
    .await?;
    node.agent = Some(Agent::start("first")?);
    before.check(node).await
}

pub(super) async fn pods_outlive_a_kubelet_and_an_agent_restart(node: &mut Node) -> Result<()> {
    let before = Before::start(node, 3).await?;
    node.kubelet.stop().await?;
    node.kubelet.start().await?;
    before.check(node).await?;
    if let Some(agent) = node.agent.take() {
        agent.kill().await?;
    }
    node.agent = Some(Agent::start("first")?);
    before.check(node).await
}

/// Twenty pods request one of eight cards each; the kubelet is killed while it starts them.
pub(super) async fn a_kubelet_killed_during_twenty_starts_hands_nothing_out_twice(
    node: &mut Node,
) -> Result<()> {
    let pods: Vec<Pod> = (0..20).map(|_| Pod::with(node.name("crowd"), 1)).collect();
    for pod in &pods {
        node.place(pod)?;
    }
    wait::until("the third start", wait::LONG, async || {
        let running = running(&pods)?;
        ensure!(running >= 3, "{running} run");
        Ok(())
    })
    .await?;
    node.kubelet.kill().await?;
    node.kubelet.start().await?;
    node.all_allocatable().await?;
    settled(&pods).await?;
    let mut given = Vec::new();
    for pod in &pods {
        if !pod.processes("main")?.is_empty() {
            given.extend(node.verify(pod).await?.into_values());
        }
    }
    ensure!(
        (3..=8).contains(&given.len()),
        "{} of 20 pods run",
        given.len()
    );
    ensure_distinct(&given)?;
    for pod in &pods {
        node.withdraw(pod)?;
    }
    for pod in &pods {
        wait::until("the crowd to end", wait::LONG, async || {
            ensure!(pod.processes("main")?.is_empty(), "{} runs", pod.name);
            Ok(())
        })
        .await?;
    }
    let all = Pod::with(node.name("all"), 8);
    node.run(&all).await.map(drop)
}

/// Waits until each pod runs or was rejected.
async fn settled(pods: &[Pod]) -> Result<()> {
    wait::until("each pod to run or to be refused", wait::LONG, async || {
        let seen = kubelet::pods().await?;
        let is_open = |phase: &str| phase != "Running" && phase != "Failed";
        let phases = seen
            .iter()
            .filter_map(|pod| pod["status"]["phase"].as_str());
        let open = phases.filter(|phase| is_open(phase)).count();
        ensure!(seen.len() == pods.len(), "the kubelet knows {}", seen.len());
        ensure!(open == 0, "{open} of them are neither");
        for pod in pods {
            if !pod.processes("main")?.is_empty() {
                pod.report("main")?;
            }
        }
        Ok(())
    })
    .await
}

fn running(pods: &[Pod]) -> Result<usize> {
    let mut count = 0;
    for pod in pods {
        count += pod.processes("main")?.len();
    }
    Ok(count)
}
