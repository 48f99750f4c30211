//! The steps of the demo. Each waits for the change that it describes, and fails without it.

mod pods;
mod words;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context, bail, ensure};
use api::{DevicePage, ListedDevice};
use model::State;
use sim::{
    DeviceTarget, NodeProfile,
    kubelet::{DeviceCounts, Kubelet, Pod, RegistrationOutcome},
    state::NodePlatform,
};
use tokio::time::Instant;

use super::{
    stage::Stage,
    tell::{Teller, bad, good, time},
    why::why,
};
use pods::{admit, fell, held, wait};
use words::{cards, granted, names, resources};

use crate::vendors::VENDORS;

pub(super) use words::name;

/// Time limit of a step, for slow machines.
const DEADLINE: Duration = Duration::from_secs(30);

/// Time after which an event without effect is raised again.
const ATTENTION: Duration = Duration::from_secs(2);

/// XID 79, GPU has fallen off the bus.
const OFF_THE_BUS: u64 = 79;

/// Number of devices that the first pod asks for, on a node with enough of them.
const WANTED: usize = 2;

/// State of the running demo.
#[derive(Debug)]
pub(super) struct Story<'a> {
    stage: &'a mut Stage,
    tell: Teller,
    /// Devices as the agent knew them before the failure.
    devices: DevicePage,
    /// Resource that the pods ask for: the one with the most devices.
    resource: String,
}

// === impl Story ===

impl<'a> Story<'a> {
    /// Runs and prints all steps.
    ///
    /// # Errors
    /// A change does not come within [`DEADLINE`], or the output is closed.
    pub(super) async fn play(
        stage: &'a mut Stage,
        mut tell: Teller,
        profile: &NodeProfile,
    ) -> anyhow::Result<()> {
        tell.title(&format!("Ostler demo: {}", profile.description))?;
        tell.say(
            "The GPUs and the kubelet are simulated. The agent is the real one, in a process of\n\
             its own: it finds the GPUs through the driver library, as on any node.",
        )?;
        // WSL and Tegra have one device node for all GPUs: the agent offers them as one device.
        let apart = !matches!(profile.platform, NodePlatform::Wsl | NodePlatform::Tegra);
        let devices = found(stage, &mut tell, apart).await?;
        let resource = registered(stage, &mut tell, &devices).await?;
        let mut story = Self {
            stage,
            tell,
            devices,
            resource,
        };
        let train = story.first_pod().await?;
        if !apart {
            story.refused().await?;
            story.tell.say(words::TOGETHER)?;
            return story.end();
        }
        let lost = story.failure(&train).await?;
        story.rest(&train, &lost).await?;
        story.recovery(&lost).await?;
        story.again(&train).await?;
        story.end()
    }

    async fn first_pod(&mut self) -> anyhow::Result<Vec<String>> {
        let there = self.stage.kubelet.resource_devices(&self.resource).len();
        let wanted = WANTED.min(there);
        let asks = format!("Pod train asks for {wanted} {}", self.resource);
        self.tell.step(&asks).await?;
        let admitted = admit(&self.stage.kubelet, "train", &self.resource, wanted).await?;
        let ids = held(&admitted);
        let entries = self.entries(&ids);
        let devices: Vec<_> = entries.iter().map(|entry| &*entry.device).collect();
        let chosen = names(&entries);
        match why(&devices) {
            reason if reason.is_empty() => self.tell.say(&format!("It gets {chosen}."))?,
            reason => self.tell.say(&format!(
                "The kubelet asks the agent which ones fit together. The pod gets {chosen}:\n{reason}."
            ))?,
        }
        self.tell.say(&granted(&admitted))?;
        Ok(ids)
    }

    /// Lets the card of the last of these devices fail. Returns the card's entry from before.
    async fn failure(&mut self, train: &[String]) -> anyhow::Result<ListedDevice> {
        let card = self.card(train)?;
        let title = format!(
            "{} fails: it falls off the bus, under pod train",
            name(&card)
        );
        self.tell.step(&title).await?;
        let before = self.stage.kubelet.node_status();
        let ids = self.parts(&card);
        let target = DeviceTarget::Uuid(card.device.id.to_string());
        // The event comes before the loss, so that the time is that of the event alone.
        let took = time(self.raise(&target, &ids).await?);
        self.stage.node.lose_cards(&target)?;
        let lost = |snapshot: &DevicePage| {
            let fell = |id: &String| snapshot.find_listed(id).is_some_and(fell);
            ids.iter().all(fell)
        };
        let wanted = "the agent names XID 79 and the loss of the card";
        let snapshot = self.stage.agent.until(wanted, DEADLINE, lost).await?;
        let entry = snapshot.find_listed(card.device.id.as_str());
        let entry = entry.context("the agent has forgotten the card")?;
        self.tell.say(&format!(
            "The driver reports XID {OFF_THE_BUS}, and the kubelet knows after {took}. From then on the driver\n\
             answers every call for the card with GPU_IS_LOST. `ostler devices` says:\n\n  {}  {}",
            name(entry),
            bad(&format!("{}: {}", entry.verdict.state, entry.verdict.join_evidence())),
        ))?;
        self.tell.say(&words::way_out(entry))?;
        self.tell
            .say(&words::change(&before, &self.stage.kubelet.node_status()))?;
        Ok(card)
    }

    /// Raises the XID on a card. Returns the time until the kubelet lists the card as unhealthy.
    async fn raise(&self, target: &DeviceTarget, ids: &[String]) -> anyhow::Result<Duration> {
        let (kubelet, end) = (&self.stage.kubelet, Instant::now() + DEADLINE);
        loop {
            let begun = Instant::now();
            self.stage.node.raise_xid(target, OFF_THE_BUS)?;
            let out = |id: &str, healthy: bool| healthy != ids.iter().any(|known| known == id);
            let known = wait(kubelet, &self.resource, ATTENTION, out).await;
            match known.context("the kubelet does not see the card out of service") {
                Ok(()) => return Ok(begun.elapsed()),
                Err(error) if Instant::now() > end => return Err(error),
                // A probe that has just started may not wait for events yet, and misses earlier ones.
                Err(_) => {}
            }
        }
    }

    /// Admits another pod, which takes all devices that are left: never the lost card.
    async fn rest(&mut self, train: &[String], lost: &ListedDevice) -> anyhow::Result<()> {
        let listed = self.stage.kubelet.resource_devices(&self.resource);
        let well = listed.into_iter().filter(|(_, device)| device.healthy);
        let (kept, free): (Vec<_>, Vec<_>) =
            well.map(|(id, _)| id).partition(|id| train.contains(id));
        let (resource, left) = (self.resource.clone(), free.len());
        if left == 0 {
            return self.refused().await;
        }
        let title = format!("Pod serve asks for all that is left: {left} {resource}");
        self.tell.step(&title).await?;
        if !kept.is_empty() {
            let kept = names(&self.entries(&kept));
            self.tell.say(&format!(
                "Pod train keeps {kept}: the kubelet takes nothing from a running pod."
            ))?;
        }
        let admitted = admit(&self.stage.kubelet, "serve", &resource, left).await?;
        let ids = held(&admitted);
        let lost_ids = self.parts(lost);
        ensure!(
            !ids.iter().any(|id| lost_ids.contains(id)),
            "pod serve was given a part of the lost card: {ids:?}"
        );
        let spared = match lost_ids.len() {
            1 => format!("{} is not among them", name(lost)),
            _ => format!("None of them is on {}", name(lost)),
        };
        let chosen = names(&self.entries(&ids));
        self.tell
            .say(&format!("Pod serve gets {chosen}. {spared}."))?;
        Ok(())
    }

    /// Shows the kubelet's refusal of a pod when no device is left.
    async fn refused(&mut self) -> anyhow::Result<()> {
        let resource = self.resource.clone();
        self.tell
            .step(&format!(
                "Pod serve asks for 1 {resource}, and nothing is left"
            ))
            .await?;
        match admit(&self.stage.kubelet, "serve", &resource, 1).await {
            Ok(_) => bail!("pod serve was admitted although no device was left"),
            Err(error) => self.tell.say(&format!(
                "In a cluster the scheduler would let it wait. Sent to the node all the same, it is\n\
                 refused, in the kubelet's words:\n\n  {}",
                error.root_cause()
            ))?,
        }
        Ok(())
    }

    async fn recovery(&mut self, lost: &ListedDevice) -> anyhow::Result<()> {
        let title = format!("{} comes back after a reset", name(lost));
        self.tell.step(&title).await?;
        let before = self.stage.kubelet.node_status();
        let begun = Instant::now();
        self.stage
            .node
            .restore_cards(&DeviceTarget::Uuid(lost.device.id.to_string()))?;
        let well = |_: &str, healthy| healthy;
        let waited = wait(&self.stage.kubelet, &self.resource, DEADLINE, well).await;
        waited.context("the kubelet does not see the card healthy again")?;
        let took = time(begun.elapsed());
        let id = lost.device.id.as_str();
        let healthy = |snapshot: &DevicePage| {
            let entry = snapshot.find_listed(id);
            entry.is_some_and(|entry| entry.verdict.state == State::Healthy)
        };
        let wanted = "the agent finds the card healthy";
        self.stage.agent.until(wanted, DEADLINE, healthy).await?;
        self.tell.say(&format!(
            "The agent sees that {} was away and is back. After three good looks over 3 s, here {took}\n\
             after the reset, it calls it {} again. Nobody had to restart anything.\n\
             (Unless told otherwise it looks every 10 s, and wants the card to be well for 20 s.)",
            name(lost),
            good("Healthy")
        ))?;
        self.tell
            .say(&words::change(&before, &self.stage.kubelet.node_status()))?;
        Ok(())
    }

    /// Deletes the first pod and admits it again.
    async fn again(&mut self, train: &[String]) -> anyhow::Result<()> {
        self.tell.step("Pod train is deleted and made anew").await?;
        let pod = Pod::new("default", "train").pod_id();
        ensure!(
            self.stage.kubelet.remove_pod(&pod),
            "pod train was not there any more"
        );
        let admitted = admit(&self.stage.kubelet, "train", &self.resource, train.len()).await?;
        let chosen = names(&self.entries(&held(&admitted)));
        self.tell.say(&format!("It gets {chosen}."))?;
        Ok(())
    }

    fn end(self) -> anyhow::Result<()> {
        let wrong = self.stage.kubelet.violations();
        if let Some(first) = wrong.first() {
            bail!("the agent broke the kubelet's contract: {first}");
        }
        if !self.tell.is_live() {
            self.tell.say(words::NEXT)?;
        }
        Ok(())
    }

    /// Entries of these devices from before the failure, in the driver's order.
    fn entries(&self, ids: &[String]) -> Vec<&ListedDevice> {
        let found = ids.iter().filter_map(|id| self.devices.find_listed(id));
        let mut entries: Vec<&ListedDevice> = found.collect();
        words::sort(&mut entries);
        entries
    }

    /// Entry of the card of the last of these devices.
    fn card(&self, ids: &[String]) -> anyhow::Result<ListedDevice> {
        let entries = self.entries(ids);
        let last = entries
            .last()
            .context("the pod got no device that the agent knows")?;
        let card = self.devices.find_listed(last.device.card_id().as_str());
        Ok(card
            .context("the agent does not list the card of a device")?
            .clone())
    }

    /// Ids on a card: its own and those of its partitions.
    fn parts(&self, card: &ListedDevice) -> Vec<String> {
        let parts = self.devices.devices.iter();
        let parts = parts.filter(|entry| *entry.device.card_id() == card.device.id);
        parts.map(|entry| entry.device.id.to_string()).collect()
    }
}

/// Waits for the agent's first full report, and prints it. Cards without device nodes of their own
/// (`apart` is false) are one device, which may have no samples.
async fn found(stage: &mut Stage, tell: &mut Teller, apart: bool) -> anyhow::Result<DevicePage> {
    tell.step("The agent starts and looks for GPUs").await?;
    let expected = match apart {
        true => stage.node.list_gpus()?.len() + stage.node.list_migs()?.len(),
        false => 1,
    };
    let all = |snapshot: &DevicePage| {
        let sampled = snapshot
            .devices
            .iter()
            .all(|entry| entry.telemetry.is_some());
        snapshot.devices.len() == expected && (sampled || !apart)
    };
    let wanted = format!("the agent finds {expected} devices");
    let snapshot = stage.agent.until(&wanted, DEADLINE, all).await?;
    tell.say(&words::driver(&snapshot))?;
    tell.table(&cards(&snapshot))?;
    Ok(snapshot)
}

/// Waits until every resource is registered, and prints them. Returns the one with the most devices.
async fn registered(
    stage: &Stage,
    tell: &mut Teller,
    devices: &DevicePage,
) -> anyhow::Result<String> {
    tell.step("The agent registers with the kubelet").await?;
    let offers = pool::offers(VENDORS, &Arc::new(devices.to_snapshot()));
    let expected: BTreeMap<String, usize> = offers
        .iter()
        .map(|offer| (offer.resource.to_string(), offer.units.len()))
        .collect();
    let kubelet = &stage.kubelet;
    let there = |kubelet: &Kubelet| {
        let node = kubelet.node_status();
        let listed = |(name, count): (&String, &usize)| {
            let wanted = DeviceCounts {
                capacity: *count,
                allocatable: *count,
            };
            node.get(name) == Some(&wanted)
        };
        let calls = kubelet.registrations();
        expected.iter().all(listed)
            && calls
                .iter()
                .all(|call| call.outcome == RegistrationOutcome::Accepted)
    };
    kubelet
        .wait_until("every resource is registered", there, DEADLINE)
        .await?;
    tell.say(
        "The kubelet accepts, dials back and lists the devices. For each resource: how many there
\
         are, on which socket, and how long after the start of the agent the list arrived.",
    )?;
    tell.table(&resources(kubelet, stage.agent.started))?;
    let most = expected.iter().rev().max_by_key(|(_, count)| **count);
    let (name, _) = most.context("the node has no resource to ask for")?;
    Ok(name.clone())
}
