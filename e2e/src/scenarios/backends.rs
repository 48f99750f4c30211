//! Two backends on one node: NVIDIA's, and the probe of the guide for custom cards.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;
use serde_json::Value;

use super::{health::says, length, logged};
use crate::{
    agent::{self, Agent},
    kubelet::{self, RESOURCE},
    node::{Node, ensure_distinct},
    pod::Pod,
    process::{self, Id},
    wait,
};

mod company;

use company::{CARDS, CRYPTO, Card};

/// Units of both resources in total.
const BOTH: [(&str, usize); 2] = [(RESOURCE, 8), (CRYPTO, CARDS.len())];

/// Longer than any step takes.
const ALWAYS: Duration = Duration::from_secs(600);

/// The pod has the device nodes, variables and mount of the guide's config, and a pod of the other
/// vendor has none of them.
pub(super) async fn cards_of_a_python_probe_reach_pods_beside_gpus(node: &mut Node) -> Result<()> {
    company::serve(node).await?;
    let seen = kubelet::nodes(CRYPTO).await?;
    let wanted: BTreeMap<String, u32> = CARDS.map(|card| (card.id.to_owned(), card.numa)).into();
    ensure!(seen == wanted, "the kubelet knows the NUMA nodes {seen:?}");
    let mut given = Vec::new();
    for _ in CARDS {
        run_gpu(node).await?;
        let pod = company::pod(node.name("crypto"), CRYPTO, 1);
        given.push((company::run(node, &pod).await?, pod));
    }
    ensure_distinct(given.iter().map(|(cards, _)| cards))?;
    let late = company::pod(node.name("late"), CRYPTO, 1);
    node.place(&late)?;
    let (reason, message) = node.refused(&late).await?;
    ensure!(message.contains(CRYPTO), "refused: {reason}: {message}");
    for (_, pod) in &given {
        node.remove(pod).await?;
    }
    let both = company::pod(node.name("both"), CRYPTO, 2);
    company::run(node, &both).await.map(drop)
}

/// A self-test that fails, and a card that does not report its identity.
pub(super) async fn a_card_of_a_python_probe_fails_and_recovers(node: &mut Node) -> Result<()> {
    company::serve(node).await?;
    let from = kubelet::log_length()?;
    let pod = company::pod(node.name("victim"), CRYPTO, 1);
    let given = company::run(node, &pod).await?;
    let process = pod.process("main")?;
    let broken = given.first().context("it has one card")?;
    let card = Card::named(broken)?;
    let other = CARDS.iter().find(|other| other.id != card.id);
    let other = other.context("there are two cards")?;
    says(&pod, card.id, "Healthy").await?;
    let failures = [
        ("key store is sealed", Card::set_health as Fail),
        ("No such file", |card, _| card.silence()),
    ];
    for (words, fail) in failures {
        fail(card, words)?;
        is_served(&[other.id]).await.context(words)?;
        says(&pod, card.id, "Unhealthy").await?;
        let told = agent::ask(&["health", card.id]).await?;
        ensure!(told.contains(words), "no `{words}` in {told}");
        let next = company::pod(node.name("next"), CRYPTO, 1);
        let next_given = company::run(node, &next).await?;
        ensure_distinct([&given, &next_given])?;
        let late = company::pod(node.name("late"), CRYPTO, 1);
        node.place(&late)?;
        node.refused(&late).await?;
        node.remove(&next).await?;
        card.mend()?;
        is_served(&CARDS.map(|card| card.id)).await.context(words)?;
        says(&pod, card.id, "Healthy").await?;
    }
    ensure!(pod.process("main")? == process, "the pod was replaced");
    stood(RESOURCE, from)
}

/// A way in which a card fails.
type Fail = fn(Card, &str) -> Result<()>;

pub(super) async fn a_python_probe_that_dies_hangs_or_floods_leaves_gpus_alone(
    node: &mut Node,
) -> Result<()> {
    company::serve(node).await?;
    let agent = node.agent.as_ref().and_then(Agent::pid);
    let from = kubelet::log_length()?;
    let neighbour = nvidia_probe()?;
    for (fault, words) in [
        (Signal::KILL, "the probe stopped: it ended"),
        (Signal::STOP, "the probe gave no sign of life"),
    ] {
        whole(Box::pin(strike(node, company::probe, fault, words)))
            .await
            .with_context(|| format!("{fault:?}"))?;
    }
    whole(Box::pin(flood(node))).await.context("a flood")?;
    let pod = company::pod(node.name("crypto"), CRYPTO, 2);
    company::run(node, &pod).await?;
    for (resource, _) in BOTH {
        stood(resource, from)?;
    }
    let now = nvidia_probe()?;
    ensure!(now == neighbour, "NVIDIA's probe was replaced");
    let now = node.agent.as_ref().and_then(Agent::pid);
    ensure!(now == agent, "the agent was replaced");
    Ok(())
}

pub(super) async fn an_nvidia_probe_that_dies_or_hangs_leaves_other_cards_alone(
    node: &mut Node,
) -> Result<()> {
    company::serve(node).await?;
    let from = kubelet::log_length()?;
    let neighbour = company::probe()?;
    for (fault, words) in [
        (Signal::KILL, "the probe stopped: it ended"),
        (Signal::STOP, "the probe gave no sign of life"),
    ] {
        whole(Box::pin(strike(node, nvidia_probe, fault, words)))
            .await
            .with_context(|| format!("{fault:?}"))?;
        let now = company::probe()?;
        ensure!(now == neighbour, "the crypto probe was replaced");
    }
    for (resource, _) in BOTH {
        stood(resource, from)?;
    }
    Ok(())
}

/// Sends a signal to a probe and runs pods with both kinds of card at once. Waits until the agent
/// reports the error and has another probe, and runs pods again.
async fn strike(
    node: &mut Node,
    probe: fn() -> Result<Id>,
    fault: Signal,
    words: &str,
) -> Result<()> {
    let said = length("agent");
    let struck = probe()?;
    process::send(struck.pid, fault)?;
    run_both(node).await?;
    logged(said, words).await?;
    another_probe(probe, struck).await?;
    run_both(node).await
}

/// Replaces the probe by one that floods its output, runs pods with both kinds of card meanwhile,
/// and restores the probe.
async fn flood(node: &mut Node) -> Result<()> {
    let struck = company::probe()?;
    company::install_flood()?;
    process::send(struck.pid, Signal::KILL)?;
    wait::until("a flood that is noticed", wait::LONG, async || {
        let backends = backends().await?;
        let crypto = &backends["crypto"];
        let message = crypto["message"].as_str().unwrap_or_default();
        ensure!(message.contains("lines within a second"), "{crypto}");
        Ok(())
    })
    .await?;
    run_both(node).await?;
    are_in_phase("Failing").await?;
    company::install_probe()?;
    are_in_phase("Running").await
}

/// Waits until the crypto backend is in this phase and NVIDIA's is running.
async fn are_in_phase(phase: &str) -> Result<()> {
    wait::until(format_args!("phase {phase}"), wait::LONG, async || {
        let backends = backends().await?;
        for (name, wanted) in [("crypto", phase), ("nvidia", "Running")] {
            let seen = &backends[name]["phase"];
            ensure!(seen == wanted, "{name} is {seen}");
        }
        Ok(())
    })
    .await
}

/// Runs a pod with a GPU and one with a crypto card to their ends.
async fn run_both(node: &mut Node) -> Result<()> {
    let gpu = run_gpu(node).await?;
    let crypto = company::pod(node.name("crypto"), CRYPTO, 1);
    company::run(node, &crypto).await?;
    node.remove(&gpu).await?;
    node.remove(&crypto).await
}

/// Runs a pod with a GPU, checks that it has nothing else, and returns it.
async fn run_gpu(node: &mut Node) -> Result<Pod> {
    let pod = company::pod(node.name("gpu"), RESOURCE, 1);
    node.run(&pod).await?;
    company::has_nothing(&pod.report("main")?)?;
    Ok(pod)
}

/// Waits until the probe is another process than `before`.
async fn another_probe(probe: fn() -> Result<Id>, before: Id) -> Result<()> {
    wait::until("another probe", wait::LONG, async || {
        ensure!(probe()? != before, "it is the same");
        Ok(())
    })
    .await
}

/// Process of NVIDIA's probe.
fn nvidia_probe() -> Result<Id> {
    let is_it = |words: &[String]| {
        let program = words.first().is_some_and(|word| word == "ostler-probe");
        program && words.iter().any(|word| word == "nvidia")
    };
    match *process::find(is_it)?.as_slice() {
        [one] => Ok(one),
        ref all => bail!("there are {} probes of NVIDIA's", all.len()),
    }
}

/// Backends in the agent's status, by name.
async fn backends() -> Result<Value> {
    let told = agent::ask(&["devices", "-o", "json"]).await?;
    let mut told: Value = serde_json::from_str(&told)?;
    let mut found = Value::default();
    for backend in told["backends"].as_array_mut().into_iter().flatten() {
        let name = backend["name"].as_str().unwrap_or_default().to_owned();
        found[name] = backend.take();
    }
    Ok(found)
}

/// Does `work`, while all units of both resources must stay allocatable.
async fn whole(work: impl Future<Output = Result<()>>) -> Result<()> {
    let stands = wait::throughout("both resources", ALWAYS, async || {
        for (resource, count) in BOTH {
            let seen = kubelet::allocatable_of(resource).await?.len();
            ensure!(seen == count, "{seen} of {count} {resource} are left");
        }
        Ok(())
    });
    tokio::select! {
        done = work => done,
        stood = stands => stood.and_then(|()| bail!("it takes longer than {ALWAYS:?}")),
    }
}

/// Checks that every list of a resource after an offset in the kubelet's log was complete and
/// healthy.
fn stood(resource: &str, from: usize) -> Result<()> {
    let count = BOTH.into_iter().find(|(name, _)| *name == resource);
    let count = u32::try_from(count.context("it is one of both")?.1)?;
    let lists = kubelet::counts(resource, from)?;
    ensure!(
        lists.iter().all(|list| *list == (count, count)),
        "the kubelet was told of other {resource}: {lists:?}"
    );
    Ok(())
}

/// Waits until the kubelet has all crypto cards and exactly these are allocatable.
async fn is_served(ids: &[&str]) -> Result<()> {
    let wanted: BTreeSet<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let counts = (u32::try_from(CARDS.len())?, u32::try_from(ids.len())?);
    wait::until(format_args!("healthy {ids:?}"), wait::LONG, async || {
        let seen = kubelet::allocatable_of(CRYPTO).await?;
        ensure!(seen == wanted, "they are {seen:?}");
        let seen = kubelet::counted(CRYPTO)?;
        ensure!(seen == counts, "the kubelet counts {seen:?}");
        Ok(())
    })
    .await
}
