//! The node: its programs, and the actions of tests on it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context as _, Result, ensure};
use sim::{DeviceTarget, NodeProfile};

use crate::{
    agent::Agent,
    containerd,
    device::{self, Own},
    image,
    kubelet::{self, Kubelet, Manner},
    place,
    process::{self, Process},
    root, wait,
};

mod pods;

pub use pods::{Given, behind, ensure_distinct, place_manifest};

/// Simulated machine: eight cards with NVSwitches.
const PROFILE: &str = "dgx-a100";

/// A running node.
#[derive(Debug)]
pub struct Node {
    /// Simulated driver.
    pub driver: sim::Node,
    /// Minor number of each card, by UUID.
    pub cards: BTreeMap<String, u32>,
    /// Kubelet of the node.
    pub kubelet: Kubelet,
    /// Agent, while one runs as a plain process.
    pub agent: Option<Agent>,
    containerd: Option<Process>,
    major: u32,
    count: u32,
}

// === impl Node ===

impl Node {
    /// Starts everything and waits until all cards are allocatable.
    ///
    /// # Errors
    /// If a part does not start; the error names it.
    pub async fn up() -> Result<Self> {
        let driver = sim::Node::create_node(
            Path::new(place::DRIVER),
            &NodeProfile::find_profile(PROFILE)?,
        )?;
        let cards = driver
            .list_gpus()?
            .into_iter()
            .map(|gpu| (gpu.uuid, gpu.minor));
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

    /// Stops everything in order.
    ///
    /// # Errors
    /// If a part does not end.
    pub async fn down(mut self) -> Result<()> {
        self.clear().await?;
        self.stop_agent().await?;
        self.kubelet.stop().await?;
        if let Some(containerd) = self.containerd.take() {
            containerd.stop().await?;
        }
        Ok(())
    }

    /// Deletes the state that a power cut would lose, then starts containerd, but neither kubelet
    /// nor agent.
    ///
    /// # Errors
    /// If a process stays, or containerd does not start.
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
        self.driver.reboot()?;
        self.containerd = Some(containerd::start().await?);
        Ok(())
    }

    /// New name for a pod. Names are not used twice: a static pod's identity comes from its
    /// manifest.
    pub fn name(&mut self, stem: &str) -> String {
        self.count += 1;
        format!("{stem}-{}", self.count)
    }

    /// Waits until exactly the cards that are not in `out` are allocatable.
    ///
    /// # Errors
    /// If they are not within the timeout.
    pub async fn allocatable_without(&self, out: &[&str]) -> Result<()> {
        let cards = self
            .cards
            .keys()
            .filter(|card| !out.contains(&card.as_str()));
        let wanted: BTreeSet<String> = cards.cloned().collect();
        let what = format!("{} allocatable cards", wanted.len());
        wait::until(what, wait::LONG, async || {
            let seen = kubelet::allocatable().await?;
            ensure!(seen == wanted, "there are {}", seen.len());
            Ok(())
        })
        .await
    }

    /// Waits until exactly `count` units of a resource are allocatable. Returns the units.
    ///
    /// # Errors
    /// If they are not within the timeout.
    pub async fn offers(&self, resource: &str, count: usize) -> Result<BTreeSet<String>> {
        let what = format!("{count} allocatable units of {resource}");
        wait::until(what, wait::LONG, async || {
            let seen = kubelet::allocatable_of(resource).await?;
            ensure!(seen.len() == count, "there are {seen:?}");
            Ok(seen)
        })
        .await
    }

    /// All cards and all parts of cards, with the nodes that only they have.
    ///
    /// # Errors
    /// If the driver's files cannot be read.
    pub fn devices(&self) -> Result<BTreeMap<String, Own>> {
        let card = |uuid: &String| {
            let minor = self.cards.get(uuid).copied();
            Own::from_iter(minor.map(device::card))
        };
        let mut all: BTreeMap<String, Own> = BTreeMap::new();
        for uuid in self.cards.keys() {
            all.insert(uuid.clone(), card(uuid));
        }
        let file = self
            .driver
            .host_root()
            .join("proc/driver/nvidia-caps/mig-minors");
        let rights = fs_err::read_to_string(file)?;
        for mig in self.driver.list_migs()? {
            let gpu = self.cards.get(&mig.gpu).copied().unwrap_or_default();
            let instance = format!("gpu{gpu}/gi{}", mig.gpu_instance);
            let names = [
                format!("{instance}/access "),
                format!("{instance}/ci{}/access ", mig.compute_instance),
            ];
            let mut own = card(&mig.gpu);
            for name in names {
                let number = rights.lines().find_map(|line| line.strip_prefix(&name));
                let number = number.with_context(|| format!("the driver has no {name}"))?;
                own.extend([device::capability(number.parse()?)]);
            }
            all.insert(mig.uuid, own);
        }
        Ok(all)
    }

    /// Stops the agent, if it runs as a plain process.
    ///
    /// # Errors
    /// If the exit status is not success.
    pub async fn stop_agent(&mut self) -> Result<()> {
        match self.agent.take() {
            Some(agent) => agent.stop().await,
            None => Ok(()),
        }
    }

    /// Replaces the running agent by another one. [`Self::clear`] restores the usual agent.
    ///
    /// # Errors
    /// If the old agent fails at its end, or the new one cannot be started.
    pub async fn replace_agent(&mut self, start: impl FnOnce() -> Result<Agent>) -> Result<()> {
        self.stop_agent().await?;
        self.agent = Some(start()?);
        Ok(())
    }

    /// Replaces the running kubelet by one with another allocation policy. [`Self::clear`] restores
    /// the usual kubelet.
    ///
    /// # Errors
    /// If the old kubelet does not end, or the new one does not get all cards.
    pub async fn replace_kubelet(&mut self, manner: Manner) -> Result<()> {
        self.kubelet.stop().await?;
        self.kubelet.set(manner)?;
        self.kubelet.start().await?;
        self.all_allocatable().await
    }

    /// Waits until all cards are allocatable.
    ///
    /// # Errors
    /// If they are not within the timeout.
    pub async fn all_allocatable(&self) -> Result<()> {
        self.allocatable_without(&[]).await
    }

    /// Restores the initial state: no pods, all cards healthy, one agent, one kubelet.
    ///
    /// # Errors
    /// If that is not reached within the timeout.
    pub async fn clear(&mut self) -> Result<()> {
        for entry in fs_err::read_dir(place::MANIFESTS)? {
            fs_err::remove_file(entry?.path())?;
        }
        self.driver.restore_cards(&DeviceTarget::All)?;
        if self.driver.list_gpus()?.iter().any(|gpu| gpu.mig_enabled) {
            self.driver.set_mig(&DeviceTarget::All, false)?;
        }
        self.driver.clear_faults(None)?;
        if self.kubelet.manner() != Manner::Usual {
            self.kubelet.kill().await?;
            self.kubelet.set(Manner::Usual)?;
            self.kubelet.start().await?;
        }
        if self.kubelet.ready().await.is_err() {
            self.kubelet.kill().await?;
            self.kubelet.start().await?;
        }
        if self
            .agent
            .as_mut()
            .is_none_or(|agent| agent.check().is_err())
        {
            self.agent = Some(Agent::start("first")?);
        }
        if self.agent.as_ref().is_some_and(|agent| !agent.is_usual()) {
            self.replace_agent(|| Agent::start("first")).await?;
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
