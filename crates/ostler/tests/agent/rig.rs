//! A node to test on: a simulated driver, a simulated kubelet, and a folder for everything.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Output,
    time::Duration,
};

use model::CauseKind;
use sim::{
    Scratch, Target,
    kubelet::{AdmissionError, Admitted, Devices, Era, Granted, Kubelet, Pod, Settings},
};
use tokio::time::{Instant, sleep};

use crate::process::{Agent, ostler};

/// Generous: nothing that is tested comes near it.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// The time between two looks at something that cannot be waited for.
const STEP: Duration = Duration::from_millis(20);

/// Whole cards.
pub(crate) const GPU: &str = "nvidia.com/gpu";
/// A node with eight whole cards.
pub(crate) const DGX: &str = "dgx-a100";
/// A node whose cards are partitioned in different ways.
pub(crate) const MIG: &str = "a100-mig";

/// The usual patience, looks in quick succession, and a quick way back.
pub(crate) const QUICK: &str = "probe: {period: 500ms}\nhealth: {holdDown: 500ms, passes: 2}\n";

/// A simulated node in a folder of its own. The kubelet and the agents on it come and go.
pub(crate) struct Rig {
    pub(crate) node: Scratch,
}

/// A node with a kubelet and an agent that knows it.
pub(crate) struct Running {
    // In this order: the agent goes first, the folder last.
    pub(crate) agent: Agent,
    pub(crate) kubelet: Kubelet,
    pub(crate) rig: Rig,
}

// === impl Rig ===

impl Rig {
    pub(crate) fn new(profile: &str) -> Self {
        let node = Scratch::named(profile).unwrap();
        node.trace().unwrap();
        Self { node }
    }

    /// Starts a kubelet.
    pub(crate) async fn kubelet(&self, era: Era) -> Kubelet {
        let settings = Settings {
            pod_resources: Some(self.pod_resources()),
            era,
            ..Settings::new(self.kubelet_dir())
        };
        Kubelet::start(settings).await.unwrap()
    }

    /// Starts an agent with this config.
    pub(crate) fn agent(&self, config: &str) -> Agent {
        self.agent_named("ostler", config)
    }

    /// Starts an agent whose files have this name, so that there can be several.
    pub(crate) fn agent_named(&self, name: &str, config: &str) -> Agent {
        let file = self.path(&format!("{name}.yaml"));
        fs_err::write(&file, config).unwrap();
        Agent::start(self, name)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.node.path(name)
    }

    pub(crate) fn kubelet_dir(&self) -> PathBuf {
        self.path("kubelet")
    }

    pub(crate) fn pod_resources(&self) -> PathBuf {
        self.path("pod-resources/kubelet.sock")
    }

    /// The folder of CDI specs.
    pub(crate) fn cdi_dir(&self) -> PathBuf {
        self.path("cdi")
    }

    /// The UUID of a card.
    pub(crate) fn uuid(&self, index: usize) -> String {
        self.node.gpus().unwrap()[index].uuid.clone()
    }

    /// How many calls were made, but for those that a probe makes all the time: it waits for
    /// events, and glances at how the cards are cut.
    pub(crate) fn calls(&self) -> usize {
        const ALWAYS: [&str; 3] = [
            "nvmlEventSetWait",
            "nvmlDeviceGetHandleBy",
            "nvmlDeviceGetMigMode",
        ];
        let calls = self.node.calls().unwrap();
        let always = |call: &&String| ALWAYS.iter().any(|name| call.starts_with(name));
        calls.iter().filter(|call| !always(call)).count()
    }

    /// Has the probe look at once: the driver reports an event that means nothing.
    pub(crate) async fn nudge(&self) {
        self.listening().await;
        self.node.xid(&card(0), 43).unwrap();
    }

    /// Waits until the agent has read a card's counters after an event of it, and has kept them: a reset
    /// that comes later is known by them.
    pub(crate) async fn counted(&self, index: usize) {
        let (file, id) = (self.path("kubelet/ostler-state.json"), self.uuid(index));
        let is_counted = || {
            let text = fs_err::read_to_string(&file).unwrap_or_default();
            let state = serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default();
            let card = &state["health"]["devices"][&id];
            let mut events = card["events"].as_array().into_iter().flatten();
            card["since_reset"].is_object()
                && card["events"].is_array()
                && events.all(|event| event.get("uncounted").is_none())
        };
        eventually("the counters are kept", is_counted).await;
    }

    /// Waits until a probe listens to the events of all cards: one that runs now, not one before it.
    pub(crate) async fn listening(&self) {
        let waits = || {
            let calls = self.node.calls().unwrap();
            let waits = calls.iter().filter(|c| c.starts_with("nvmlEventSetWait"));
            waits.count()
        };
        let before = waits();
        eventually("a probe waits for events", || waits() > before).await;
    }
}

// === impl Running ===

impl Running {
    /// Starts everything and waits until the kubelet counts every device.
    pub(crate) async fn start(profile: &str, config: &str) -> Self {
        Self::on(Rig::new(profile), config).await
    }

    /// Does the same on a node that is there.
    pub(crate) async fn on(rig: Rig, config: &str) -> Self {
        let kubelet = rig.kubelet(Era::V1_37).await;
        let agent = rig.agent(config);
        let running = Self {
            agent,
            kubelet,
            rig,
        };
        running.complete(LONG).await;
        running
    }

    /// Waits until every card or partition that can be handed out is healthy at the kubelet.
    pub(crate) async fn complete(&self, limit: Duration) {
        let node = &self.rig.node;
        let whole = node
            .gpus()
            .unwrap()
            .iter()
            .filter(|g| !g.mig_enabled)
            .count();
        let all = whole + node.migs().unwrap().len();
        let allocatable = |kubelet: &Kubelet| -> usize {
            kubelet.node().values().map(|row| row.allocatable).sum()
        };
        let wanted = format!("{all} devices at the kubelet");
        let full = |kubelet: &Kubelet| allocatable(kubelet) == all;
        self.kubelet.wait_until(&wanted, full, limit).await.unwrap();
    }

    /// Waits until the kubelet may hand out exactly so many of these resources and no others.
    pub(crate) async fn offers(&self, wanted: &[(&str, usize)]) {
        let wanted: BTreeMap<String, usize> = wanted
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect();
        let so = |kubelet: &Kubelet| allocatable(kubelet) == wanted;
        let what = format!("exactly {wanted:?}");
        self.kubelet.wait_until(&what, so, LONG).await.unwrap();
    }

    /// Replaces the config file at once, as a ConfigMap's is. The agent notices it by itself.
    pub(crate) fn rewrite(&self, config: &str) {
        let (file, draft) = (self.rig.path("ostler.yaml"), self.rig.path("draft"));
        fs_err::write(&draft, config).unwrap();
        fs_err::rename(draft, file).unwrap();
    }

    /// The ids of a resource at the kubelet.
    pub(crate) fn ids(&self, resource: &str) -> BTreeSet<String> {
        self.kubelet.devices(resource).into_keys().collect()
    }

    /// Admits a pod that wants `count` devices, removes it again, and says what its container was
    /// given.
    pub(crate) async fn admit(
        &self,
        resource: &str,
        count: usize,
    ) -> Result<Granted, AdmissionError> {
        let pod = Pod::new("default", "guest").container("main", [(resource, count)]);
        let mut admitted: Admitted = self.kubelet.admit(pod).await?;
        self.kubelet.remove(&admitted.pod);
        Ok(admitted.containers.remove("main").unwrap())
    }

    /// Admits a pod that wants `count` devices, removes it again, and says what it got.
    pub(crate) async fn borrow(&self, resource: &str, count: usize) -> BTreeSet<String> {
        let granted = self.admit(resource, count).await.unwrap();
        granted.devices[resource].clone()
    }

    /// Waits until exactly these devices of a resource are unhealthy at the kubelet.
    pub(crate) async fn sick(&self, resource: &str, ids: &[&str]) {
        let wanted = |devices: &Devices| !devices.is_empty() && unhealthy(devices) == ids;
        let found = self.kubelet.wait(resource, wanted, LONG).await;
        found.unwrap_or_else(|error| panic!("unhealthy should be {ids:?}: {error}"));
    }

    /// Waits until a look has found a card lost.
    pub(crate) async fn lost(&self, id: &str) {
        let lost = |seen: &api::Devices| {
            let causes = seen.find(id).map(|entry| &entry.verdict.causes);
            causes.is_some_and(|causes| causes.iter().any(|c| c.kind == CauseKind::Lost))
        };
        self.agent.shows("the lost card", lost).await;
    }

    /// Waits until a look has read that temperature of a card.
    pub(crate) async fn warm(&self, index: usize, celsius: u32) {
        warm(&self.agent, &self.rig.uuid(index), celsius.into()).await;
    }

    /// Has a look find something, and waits for it: what the looks before found is told then. The
    /// card must be in reach.
    pub(crate) async fn looks_again(&self, index: usize) {
        let state = self.rig.node.state().unwrap();
        let other = 60 + (state.gpus[index].sensors.temperature + 1) % 10;
        let node = &self.rig.node;
        node.set(&card(index), "temperature", other).unwrap();
        warm(&self.agent, &self.rig.uuid(index), other).await;
    }

    /// What plugins did wrong.
    pub(crate) fn breaches(&self) -> Vec<String> {
        breaches(&self.kubelet)
    }
}

/// Waits until a look of an agent's has read that temperature of a card.
pub(crate) async fn warm(agent: &Agent, id: &str, celsius: u64) {
    let warm = |seen: &api::Devices| {
        let telemetry = seen.find(id).and_then(|entry| entry.telemetry.as_ref());
        telemetry.is_some_and(|t| t.temperature_celsius.map(u64::from) == Some(celsius))
    };
    agent
        .shows(&format!("{celsius} degrees of {id}"), warm)
        .await;
}

/// What plugins did wrong.
pub(crate) fn breaches(kubelet: &Kubelet) -> Vec<String> {
    let violations = kubelet.violations();
    violations.iter().map(ToString::to_string).collect()
}

/// How many of each resource may be handed out; without those of which there is nothing.
pub(crate) fn allocatable(kubelet: &Kubelet) -> BTreeMap<String, usize> {
    let rows = kubelet.node().into_iter();
    let counts = rows.map(|(name, row)| (name, row.allocatable));
    counts.filter(|(_, count)| *count > 0).collect()
}

/// The ids of the unhealthy devices.
pub(crate) fn unhealthy(devices: &Devices) -> Vec<&str> {
    let sick = devices.iter().filter(|(_, device)| !device.healthy);
    sick.map(|(id, _)| id.as_str()).collect()
}

/// Tells a person how long something took; nothing depends on it.
pub(crate) fn took(what: &str, since: Instant) {
    #[expect(clippy::print_stderr, reason = "a measurement for a person")]
    {
        eprintln!("{what}: {:.1?}", since.elapsed());
    }
}

/// The card at an index.
pub(crate) fn card(index: usize) -> Target {
    Target::Index(index)
}

/// The sockets in a folder that are not the kubelet's.
pub(crate) fn sockets(dir: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.starts_with("ostler") && name.ends_with(".sock"))
        .collect()
}

/// Waits until something is so.
pub(crate) async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "not within {LONG:?}: {what}");
        sleep(STEP).await;
    }
}

/// What a command that looks at the rig's node prints, by the agent at `control` or by itself.
pub(crate) async fn shown(rig: &Rig, control: &Path, args: &[&str]) -> Output {
    let mut command = tokio::process::Command::from(ostler());
    command.args(args);
    command.arg("--control-socket").arg(control);
    command.arg("--host-root").arg(rig.node.root());
    command.arg("--nvml-library").arg(rig.node.library());
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

/// What was printed.
pub(crate) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}
