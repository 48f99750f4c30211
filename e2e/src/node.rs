//! The node: everything that runs on it, and what the tests do with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use sim::{Profile, Target};

use crate::{
    agent::Agent,
    containerd, device, image,
    kubelet::{self, Kubelet},
    place,
    pod::Pod,
    process::{self, Process},
    report::{Answer, Report},
    root, wait,
};

/// The simulated machine: eight cards behind NVSwitches.
const PROFILE: &str = "dgx-a100";

/// The variable by which a container learns which devices are its own.
const VISIBLE: &str = "NVIDIA_VISIBLE_DEVICES";

/// A node that is up.
#[derive(Debug)]
pub struct Node {
    /// The simulated driver.
    pub driver: sim::Node,
    /// The minor number of each card, by UUID.
    pub cards: BTreeMap<String, u32>,
    /// The kubelet.
    pub kubelet: Kubelet,
    /// The agent, while one runs as a plain process.
    pub agent: Option<Agent>,
    containerd: Option<Process>,
    major: u32,
    count: u32,
}

// === impl Node ===

impl Node {
    /// Brings everything up and waits until all cards can be handed out.
    ///
    /// # Errors
    /// If a part does not come up; the error names it.
    pub async fn up() -> Result<Self> {
        let driver = sim::Node::create(Path::new(place::DRIVER), &Profile::named(PROFILE)?)?;
        driver.own_library()?;
        let cards = driver.gpus()?.into_iter().map(|gpu| (gpu.uuid, gpu.minor));
        let mut node = Self {
            cards: cards.collect(),
            driver,
            kubelet: Kubelet::default(),
            agent: None,
            containerd: Some(containerd::start().await?),
            major: device::major()?,
            count: 0,
        };
        image::import_all().await?;
        node.kubelet.start().await?;
        node.agent = Some(Agent::start("first")?);
        node.all_allocatable().await?;
        Ok(node)
    }

    /// Ends everything in an orderly way.
    ///
    /// # Errors
    /// If a part does not end.
    pub async fn down(mut self) -> Result<()> {
        self.clear().await?;
        if let Some(agent) = self.agent.take() {
            agent.stop().await?;
        }
        self.kubelet.stop().await?;
        if let Some(containerd) = self.containerd.take() {
            containerd.stop().await?;
        }
        Ok(())
    }

    /// Loses what a power cut loses, then brings up containerd, but neither kubelet nor agent.
    ///
    /// # Errors
    /// If a part stays, or containerd does not come up.
    pub async fn power_cut(&mut self) -> Result<()> {
        self.kubelet.kill().await?;
        if let Some(agent) = self.agent.take() {
            agent.kill().await?;
        }
        if let Some(containerd) = self.containerd.take() {
            containerd.kill().await?;
        }
        containerd::kill_containers().await?;
        root::forget()?;
        self.containerd = Some(containerd::start().await?);
        Ok(())
    }

    /// A name that no pod had before: a static pod's identity comes from its manifest.
    pub fn name(&mut self, stem: &str) -> String {
        self.count += 1;
        format!("{stem}-{}", self.count)
    }

    /// Gives a pod to the kubelet.
    ///
    /// # Errors
    /// If its manifest cannot be written.
    pub fn place(&self, pod: &Pod) -> Result<()> {
        place_manifest(&pod.name, &pod.manifest(self.major))
    }

    /// Takes a pod from the kubelet, without waiting.
    ///
    /// # Errors
    /// If its manifest cannot be removed.
    pub fn withdraw(&self, pod: &Pod) -> Result<()> {
        Ok(fs_err::remove_file(manifest_file(&pod.name))?)
    }

    /// Takes a pod from the kubelet and waits until it holds nothing.
    ///
    /// # Errors
    /// If it does not end.
    pub async fn remove(&self, pod: &Pod) -> Result<()> {
        self.withdraw(pod)?;
        wait::until(format_args!("{} to be gone", pod.name), wait::LONG, async || {
            for container in pod.lasting() {
                let left = pod.processes(&container.name)?;
                ensure!(left.is_empty(), "{} still runs", container.name);
            }
            let name = pod.full_name();
            let held = kubelet::held().await?;
            ensure!(held.keys().all(|(pod, _)| *pod != name), "it still holds devices");
            ensure!(kubelet::pod(&name).await.is_err(), "the kubelet still lists it");
            Ok(())
        })
        .await
    }

    /// Starts a pod, waits until its containers run, and checks what each was given.
    ///
    /// # Errors
    /// If it does not run, or was given the wrong things.
    pub async fn run(&self, pod: &Pod) -> Result<BTreeMap<String, BTreeSet<String>>> {
        self.place(pod)?;
        self.running(pod).await?;
        self.verify(pod).await
    }

    /// Waits until all lasting containers of a pod run and have reported.
    ///
    /// # Errors
    /// If they do not.
    pub async fn running(&self, pod: &Pod) -> Result<()> {
        wait::until(format_args!("{} to run", pod.name), wait::LONG, async || {
            for container in pod.lasting() {
                let seen = pod.process(&container.name).map(drop);
                let seen = seen.and_then(|()| pod.report(&container.name).map(drop));
                if let Err(error) = seen {
                    let status = status(pod).await;
                    return Err(error.context(format!("{}: {status}", container.name)));
                }
            }
            Ok(())
        })
        .await
    }

    /// Checks that what each container was given, what the kubelet says about it and what it asked
    /// for are the same. Gives the devices of each container.
    ///
    /// # Errors
    /// With the first difference.
    pub async fn verify(&self, pod: &Pod) -> Result<BTreeMap<String, BTreeSet<String>>> {
        let held = kubelet::held().await?;
        let mut all = BTreeMap::new();
        for container in pod.lasting() {
            let name = &container.name;
            let at = || format!("{}/{name}", pod.name);
            let ids = self.given(&pod.report(name)?).with_context(at)?;
            let count = usize::try_from(container.gpus)?;
            ensure!(ids.len() == count, "{} asked for {count} GPUs and has {ids:?}", at());
            let key = (pod.full_name(), name.clone());
            let said = held.get(&key).cloned().unwrap_or_default();
            ensure!(said == ids, "{} has {ids:?}, pod resources says {said:?}", at());
            all.insert(name.clone(), ids);
        }
        Ok(all)
    }

    /// The devices that a report shows, after checking that the environment, the nodes and the
    /// rights are those of the same devices.
    ///
    /// # Errors
    /// If they disagree.
    pub fn given(&self, report: &Report) -> Result<BTreeSet<String>> {
        let value = report.env.get(VISIBLE).map(String::as_str).unwrap_or_default();
        let ids: BTreeSet<String> = value
            .split(',')
            .filter(|id| !id.is_empty())
            .map(str::to_owned)
            .collect();
        let mut minors = BTreeSet::new();
        for id in &ids {
            minors.insert(*self.cards.get(id).with_context(|| format!("{id} is no card"))?);
        }
        let mut nodes: BTreeSet<String> =
            minors.iter().map(|minor| format!("/dev/nvidia{minor}")).collect();
        if !ids.is_empty() {
            nodes.extend(device::SHARED.map(|(name, _)| format!("/dev/{name}")));
        }
        let seen: BTreeSet<String> = report.nodes.keys().cloned().collect();
        ensure!(seen == nodes, "the nodes of {ids:?} are {nodes:?}, but there are {seen:?}");
        for (path, answer) in &report.nodes {
            ensure!(*answer == Answer::NoDevice, "opening {path} answered {answer:?}");
        }
        for (minor, answer) in &report.tried {
            let expected = match minors.contains(minor) {
                true => Answer::NoDevice,
                false => Answer::Forbidden,
            };
            ensure!(
                *answer == expected,
                "a node for card {minor} of its own making answered {answer:?}, not {expected:?}"
            );
        }
        Ok(ids)
    }

    /// Waits until a pod has failed. Gives the kubelet's reason and message.
    ///
    /// # Errors
    /// If it does not fail.
    pub async fn refused(&self, pod: &Pod) -> Result<(String, String)> {
        let words = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        wait::until(format_args!("{} to be refused", pod.name), wait::LONG, async || {
            let seen = kubelet::pod(&pod.full_name()).await?;
            let status = &seen["status"];
            ensure!(status["phase"] == "Failed", "it is {}", status["phase"]);
            Ok((words(&status["reason"]), words(&status["message"])))
        })
        .await
    }

    /// Waits until the kubelet may hand out exactly the cards that are not `out`.
    ///
    /// # Errors
    /// If it does not come to that.
    pub async fn allocatable_without(&self, out: &[&str]) -> Result<()> {
        let cards = self.cards.keys().filter(|card| !out.contains(&card.as_str()));
        let wanted: BTreeSet<String> = cards.cloned().collect();
        let what = format!("{} allocatable cards", wanted.len());
        wait::until(what, wait::LONG, async || {
            let seen = kubelet::allocatable().await?;
            ensure!(seen == wanted, "there are {}", seen.len());
            Ok(())
        })
        .await
    }

    /// Waits until all cards may be handed out.
    ///
    /// # Errors
    /// If it does not come to that.
    pub async fn all_allocatable(&self) -> Result<()> {
        self.allocatable_without(&[]).await
    }

    /// Makes the node as it was at the start: no pods, all cards well, one agent, one kubelet.
    ///
    /// # Errors
    /// If it does not come to that.
    pub async fn clear(&mut self) -> Result<()> {
        for entry in fs_err::read_dir(place::MANIFESTS)? {
            fs_err::remove_file(entry?.path())?;
        }
        self.driver.restore(&Target::All)?;
        self.driver.clear_faults(None)?;
        if self.kubelet.ready().await.is_err() {
            self.kubelet.kill().await?;
            self.kubelet.start().await?;
        }
        if self.agent.as_mut().is_none_or(|agent| agent.check().is_err()) {
            self.agent = Some(Agent::start("first")?);
        }
        wait::until("all pods to be gone", wait::LONG, async || {
            let left = kubelet::pods().await?.len();
            ensure!(left == 0, "the kubelet lists {left}");
            let left = process::find(|words| words.iter().any(|word| word == "/witness"))?.len();
            ensure!(left == 0, "{left} of their processes run");
            Ok(())
        })
        .await?;
        self.all_allocatable().await
    }
}

/// Gives a manifest to the kubelet. It reads half-written files, so it must not see one.
///
/// # Errors
/// If it cannot be written.
pub fn place_manifest(name: &str, manifest: &Value) -> Result<()> {
    let draft = format!("{}/.{name}", place::MANIFESTS);
    fs_err::write(&draft, manifest.to_string())?;
    Ok(fs_err::rename(draft, manifest_file(name))?)
}

fn manifest_file(name: &str) -> String {
    format!("{}/{name}.json", place::MANIFESTS)
}

/// What the kubelet says about a pod, for an error message.
async fn status(pod: &Pod) -> String {
    match kubelet::pod(&pod.full_name()).await {
        Ok(seen) => seen["status"].to_string(),
        Err(error) => error.to_string(),
    }
}

/// Fails if two of the sets have an element in common.
///
/// # Errors
/// With the element.
pub fn ensure_distinct<'a>(sets: impl IntoIterator<Item = &'a BTreeSet<String>>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for id in sets.into_iter().flatten() {
        if !seen.insert(id) {
            bail!("{id} is held twice");
        }
    }
    Ok(())
}
