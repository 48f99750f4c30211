//! Run of a script on a node of its own.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use kubelet_api::HEALTHY;
use rustix::process::Signal;
use sim::{DeviceTarget, Effect, Node, kubelet::Era};
use tokio::time::{Instant, sleep};
use web::client;

use super::model::{CUT, Dice, Model, Step};
use crate::{
    process::Agent,
    rig::{LONG, MIG, Rig, Running, card},
};

/// NVML call that every report makes for every card.
const CALL: &str = "nvmlDeviceGetTemperature";

/// XID that needs a reset.
const XID: u64 = 79;

/// Profile of the MIG devices that steps make.
const PART: &str = "1g.5gb";

/// Short periods, and a hold-down that does not grow.
const CONFIG: &str = "
probe: {period: 300ms, callLimit: 1s, retryPause: 300ms}
health: {unansweredGrace: 500ms, holdDown: 300ms, holdDownLimit: 300ms, passes: 1}
";

/// Number of further reports that must change nothing. They take longer than the hold-down.
const LOOKS: u32 = 2;

/// Card that no step concerns.
const BYSTANDER: usize = 7;

/// Id of a device; true if it is healthy.
type Told = (String, bool);

/// Running script.
pub(super) struct Play {
    running: Running,
    model: Model,
    /// `part`: the MIG device that gets XIDs. `added`: those that steps have made.
    part: Option<String>,
    added: Vec<String>,
    /// Steps so far, for the text of a failure.
    story: String,
}

// === impl Play ===

impl Play {
    /// Starts a node, and waits until all devices are healthy.
    pub(super) async fn start(name: &str, profile: &str) -> Self {
        let rig = Rig::new(profile);
        let mut part = None;
        if profile == MIG {
            for _ in 0..2 {
                part = rig.node.add_mig(&card(CUT), PART).unwrap().pop();
            }
        }
        let kubelet = rig.kubelet(Era::V1_37).await;
        let agent = rig.agent(CONFIG);
        let running = Running {
            agent,
            kubelet,
            rig,
        };
        running.complete(LONG * 2).await;
        Self {
            running,
            model: Model::new(profile == MIG),
            part,
            added: Vec::new(),
            story: format!("script {name}:"),
        }
    }

    /// Runs a random step. The error describes the failure.
    pub(super) async fn roll(&mut self, dice: &mut Dice) -> Result<(), String> {
        let step = self.model.choose(dice);
        self.step(step).await
    }

    /// Runs a step. The error describes the failure.
    pub(super) async fn step(&mut self, step: Step) -> Result<(), String> {
        let _ = write!(self.story, " {step:?}");
        let (before, since) = (self.expected(), Instant::now());
        self.carry_out(step).await;
        self.model.take(step);
        self.agrees().await?;
        self.unconcerned(step, &before, since)
    }

    /// Ends the script, and checks that every change in the log has its cause.
    pub(super) fn end(self) -> Result<(), String> {
        // A call that hangs would keep its probe process.
        self.running.rig.node.clear_faults(None).unwrap();
        let log = self.running.agent.log();
        match log.lines().find(|line| line.contains("cause=\"\"")) {
            Some(line) => Err(format!("{}\nno cause: {line}", self.story)),
            None => Ok(()),
        }
    }

    async fn carry_out(&mut self, step: Step) {
        let (node, agent) = (&self.running.rig.node, &self.running.agent);
        match step {
            Step::Lose(n) => {
                node.lose_cards(&card(n)).unwrap();
                self.holds(n, "Lost").await;
            }
            Step::Return(n) => node.restore_cards(&card(n)).unwrap(),
            Step::ReturnUnseen(n) => {
                self.restart(|node| node.restore_cards(&card(n)).unwrap())
                    .await
            }
            Step::Xid(n) => self.report(&card(n), &self.running.rig.uuid(n)).await,
            Step::XidOnPart => {
                let id = self.part.as_ref().unwrap();
                self.report(&DeviceTarget::Uuid(id.clone()), id).await;
            }
            Step::Harmless(n) => node.raise_xid(&card(n), 13).unwrap(),
            Step::Hang(n) => {
                let forever = Effect::Hang { millis: None };
                node.set_fault(CALL, Some(&card(n)), forever).unwrap();
            }
            Step::Answer => drop(node.clear_faults(Some(CALL)).unwrap()),
            Step::Flap(n) => {
                for _ in 0..3 {
                    node.lose_cards(&card(n)).unwrap();
                    sleep(Duration::from_millis(200)).await;
                    node.restore_cards(&card(n)).unwrap();
                    sleep(Duration::from_millis(200)).await;
                }
            }
            Step::Cordon(n) => self.order("/v1/cordon", n).await,
            Step::Uncordon(n) => self.order("/v1/uncordon", n).await,
            Step::Release(n) => self.order("/v1/release", n).await,
            Step::Resume(n) => self.order("/v1/resume", n).await,
            Step::Reset(n) => {
                node.lose_cards(&card(n)).unwrap();
                self.holds(n, "Lost").await;
                node.reset_cards(&card(n), Duration::ZERO).unwrap();
            }
            Step::Reload => node.reload_driver().unwrap(),
            Step::ReloadUnseen => self.restart(|node| node.reload_driver().unwrap()).await,
            Step::Cut => self.added.extend(node.add_mig(&card(CUT), PART).unwrap()),
            Step::Join => {
                let last = self.added.pop().unwrap();
                node.remove_mig(&DeviceTarget::Uuid(last)).unwrap();
            }
            Step::KillProbe => agent.kill_probes(),
            Step::RestartKubelet => self.running.kubelet.restart_kubelet().await.unwrap(),
            Step::RestartAgent => self.restart(|_| {}).await,
        }
    }

    /// Ends the agent, changes the node, and starts an agent.
    async fn restart(&mut self, between: impl FnOnce(&Node)) {
        let Running { agent, rig, .. } = &mut self.running;
        agent.signal(Signal::TERM);
        agent.ended().await;
        between(&rig.node);
        *agent = Agent::start(rig, "ostler");
    }

    /// Raises an XID until it has its cause: a probe that has just started misses earlier ones.
    async fn report(&self, target: &DeviceTarget, id: &str) {
        let begun = Instant::now();
        while !self.is_held(id, "Event").await {
            assert!(begun.elapsed() < LONG, "{}: not heard", self.story);
            self.running.rig.node.raise_xid(target, XID).unwrap();
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// Waits until a card's verdict has a cause.
    async fn holds(&self, n: usize, kind: &str) {
        let begun = Instant::now();
        let id = self.running.rig.uuid(n);
        while !self.is_held(&id, kind).await {
            assert!(begun.elapsed() < LONG, "{}: no {kind}", self.story);
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn is_held(&self, id: &str, kind: &str) -> bool {
        let Some(seen) = self.running.agent.devices().await else {
            return false;
        };
        let entry = seen.find_listed(id);
        let causes = entry.into_iter().flat_map(|entry| &entry.verdict.causes);
        causes
            .map(|cause| format!("{:?}", cause.kind))
            .any(|k| k == kind)
    }

    /// Sends the agent an order, as soon as it answers.
    async fn order(&self, action: &str, n: usize) {
        let order = serde_json::json!({ "device": self.running.rig.uuid(n) });
        let begun = Instant::now();
        while let Err(error) = client::post(&self.running.agent.control, action, &order).await {
            assert!(begun.elapsed() < LONG, "{}: {error}", self.story);
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the kubelet's devices equal the model's, and checks that they stay so.
    async fn agrees(&self) -> Result<(), String> {
        let begun = Instant::now();
        let mut looks = 0;
        loop {
            let (expected, told) = (self.expected(), self.told());
            match expected == told {
                true if looks == LOOKS => return Ok(()),
                true => {
                    self.running.looks_again(BYSTANDER).await;
                    looks += 1;
                    continue;
                }
                false => looks = 0,
            }
            if begun.elapsed() > LONG {
                let log = self.running.agent.log();
                return Err(format!(
                    "{}\nexpected {expected:#?}\ntold {told:#?}\n{log}",
                    self.story
                ));
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Checks that no list since `since` has another health for a device that the step does not
    /// concern.
    fn unconcerned(&self, step: Step, before: &[Told], since: Instant) -> Result<(), String> {
        let card = match step {
            Step::Flap(n) | Step::Reset(n) => Some(self.running.rig.uuid(n)),
            _ => None,
        };
        let after = self.expected();
        let same = before.iter().filter(|told| after.contains(told));
        let same: BTreeMap<&str, bool> = same
            // A step that lets the card go and come back may change its health for a moment.
            .filter(|(id, well)| !(*well && self.card_of(id) == card))
            .map(|(id, well)| (id.as_str(), *well))
            .collect();
        let kubelet = &self.running.kubelet;
        let lists = kubelet
            .node_status()
            .into_keys()
            .flat_map(|r| kubelet.device_lists(&r));
        for list in lists.filter(|list| list.at >= since) {
            for device in &list.devices {
                let told = device.health == HEALTHY;
                if same
                    .get(device.id.as_str())
                    .is_some_and(|well| *well != told)
                {
                    let (story, id, log) = (&self.story, &device.id, self.running.agent.log());
                    let word = &device.health;
                    return Err(format!("{story}\n{id} was told {word} meanwhile\n{log}"));
                }
            }
        }
        Ok(())
    }

    /// Card of a device: itself, or the parent of a MIG device.
    fn card_of(&self, id: &str) -> Option<String> {
        let migs = self.running.rig.node.list_migs().unwrap();
        let mig = migs.into_iter().find(|mig| mig.uuid == id);
        Some(mig.map_or_else(|| id.to_owned(), |mig| mig.gpu))
    }

    /// Every device of the node, with its health by the model.
    fn expected(&self) -> Vec<Told> {
        let node = &self.running.rig.node;
        let gpus = node.list_gpus().unwrap();
        let well = |uuid: &str| {
            let index = gpus.iter().position(|gpu| gpu.uuid == uuid).unwrap();
            self.model.is_well(index)
        };
        let whole = gpus.iter().filter(|gpu| !gpu.mig_enabled);
        let whole = whole.map(|gpu| (gpu.uuid.clone(), well(&gpu.uuid)));
        let migs = node.list_migs().unwrap();
        let part = self.part.as_ref().filter(|_| !self.model.is_part_well());
        let migs = migs.iter().map(|mig| {
            let reported = part == Some(&mig.uuid);
            (mig.uuid.clone(), well(&mig.gpu) && !reported)
        });
        let mut all: Vec<_> = whole.chain(migs).collect();
        all.sort();
        all
    }

    /// Every device at the kubelet, with its health there.
    fn told(&self) -> Vec<Told> {
        let kubelet = &self.running.kubelet;
        let resources = kubelet.node_status().into_keys();
        let devices = resources.flat_map(|resource| kubelet.resource_devices(&resource));
        let mut all: Vec<_> = devices.map(|(id, device)| (id, device.healthy)).collect();
        all.sort();
        all
    }
}
