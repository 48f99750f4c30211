//! Test node: a simulated driver, a simulated kubelet, and a temporary folder for all files.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Output,
    time::Duration,
};

use model::CauseKind;
use sim::{
    DeviceTarget, ScratchNode,
    kubelet::{
        AdmissionError, AdmittedPod, Era, GrantedDevices, Kubelet, KubeletSettings, PluginDevices,
        Pod,
    },
};
use tokio::time::{Instant, sleep};

use crate::process::{Agent, ostler};

/// Time limit of every wait. No test that passes comes near it, even on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// Interval of checks for a state that sends no event.
const STEP: Duration = Duration::from_millis(20);

/// Resource name of whole cards.
pub(crate) const GPU: &str = "nvidia.com/gpu";
/// Profile of a node with eight whole cards.
pub(crate) const DGX: &str = "dgx-a100";
/// Profile of a node whose cards have different MIG layouts.
pub(crate) const MIG: &str = "a100-mig";

/// Config with the default limits, short periods and a short hold-down.
pub(crate) const QUICK: &str = "probe: {period: 500ms}\nhealth: {holdDown: 500ms, passes: 2}\n";

/// Simulated node in a folder of its own. It outlives the kubelets and agents on it.
pub(crate) struct Rig {
    pub(crate) node: ScratchNode,
}

/// Node with a running kubelet and a running agent.
pub(crate) struct Running {
    // Fields drop in this order: the agent must end before its folder is removed.
    pub(crate) agent: Agent,
    pub(crate) kubelet: Kubelet,
    pub(crate) rig: Rig,
}

// === impl Rig ===

impl Rig {
    pub(crate) fn new(profile: &str) -> Self {
        let node = ScratchNode::from_name(profile).unwrap();
        node.trace().unwrap();
        Self { node }
    }

    /// Starts a kubelet.
    pub(crate) async fn kubelet(&self, era: Era) -> Kubelet {
        let settings = KubeletSettings {
            pod_resources: Some(self.pod_resources()),
            era,
            ..KubeletSettings::new(self.kubelet_dir())
        };
        Kubelet::start_kubelet(settings).await.unwrap()
    }

    /// Starts an agent with this config.
    pub(crate) fn agent(&self, config: &str) -> Agent {
        self.agent_named("ostler", config)
    }

    /// Starts an agent whose files have this name, so that a node can have several agents.
    pub(crate) fn agent_named(&self, name: &str, config: &str) -> Agent {
        let file = self.path(&format!("{name}.yaml"));
        fs_err::write(&file, config).unwrap();
        Agent::start(self, name)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.node.file_beside(name)
    }

    pub(crate) fn kubelet_dir(&self) -> PathBuf {
        self.path("kubelet")
    }

    pub(crate) fn pod_resources(&self) -> PathBuf {
        self.path("pod-resources/kubelet.sock")
    }

    /// Folder of the CDI specs.
    pub(crate) fn cdi_dir(&self) -> PathBuf {
        self.path("cdi")
    }

    /// UUID of a card.
    pub(crate) fn uuid(&self, index: usize) -> String {
        self.node.list_gpus().unwrap()[index].uuid.clone()
    }

    /// Number of NVML calls so far, without those that a probe makes all the time: the wait for
    /// events, and the check of the MIG layout.
    pub(crate) fn calls(&self) -> usize {
        const ALWAYS: [&str; 3] = [
            "nvmlEventSetWait",
            "nvmlDeviceGetHandleBy",
            "nvmlDeviceGetMigMode",
        ];
        let calls = self.node.traced_calls().unwrap();
        let always = |call: &&String| ALWAYS.iter().any(|name| call.starts_with(name));
        calls.iter().filter(|call| !always(call)).count()
    }

    /// Makes the probe report at once, by an event without effect on a verdict.
    pub(crate) async fn nudge(&self) {
        self.listening().await;
        // XID 43 is an error of a program (NVIDIA's XID catalogue: "GPU stopped processing").
        self.node.raise_xid(&card(0), 43).unwrap();
    }

    /// Waits until the agent has read a card's counters after an event of the card, and has written
    /// them to the state file. The agent recognises a later reset by them.
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

    /// Waits until the present probe waits for the events of all cards.
    pub(crate) async fn listening(&self) {
        let waits = || {
            let calls = self.node.traced_calls().unwrap();
            let waits = calls.iter().filter(|c| c.starts_with("nvmlEventSetWait"));
            waits.count()
        };
        // A count that grows shows a probe that waits now: the trace has those of earlier probes
        // too.
        let before = waits();
        eventually("a probe waits for events", || waits() > before).await;
    }
}

// === impl Running ===

impl Running {
    /// Starts a node, a kubelet and an agent, and waits until the kubelet counts every device.
    pub(crate) async fn start(profile: &str, config: &str) -> Self {
        Self::on(Rig::new(profile), config).await
    }

    /// Starts a kubelet and an agent on a node, and waits until the kubelet counts every device.
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

    /// Waits until every card or partition that the agent can offer is healthy at the kubelet.
    pub(crate) async fn complete(&self, limit: Duration) {
        let node = &self.rig.node;
        let whole = node
            .list_gpus()
            .unwrap()
            .iter()
            .filter(|g| !g.mig_enabled)
            .count();
        let all = whole + node.list_migs().unwrap().len();
        let allocatable = |kubelet: &Kubelet| -> usize {
            kubelet
                .node_status()
                .values()
                .map(|row| row.allocatable)
                .sum()
        };
        let wanted = format!("{all} devices at the kubelet");
        let full = |kubelet: &Kubelet| allocatable(kubelet) == all;
        self.kubelet.wait_until(&wanted, full, limit).await.unwrap();
    }

    /// Waits until exactly these resources are allocatable, in these numbers.
    pub(crate) async fn offers(&self, wanted: &[(&str, usize)]) {
        let wanted: BTreeMap<String, usize> = wanted
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect();
        let so = |kubelet: &Kubelet| allocatable(kubelet) == wanted;
        let what = format!("exactly {wanted:?}");
        self.kubelet.wait_until(&what, so, LONG).await.unwrap();
    }

    /// Replaces the config file by rename, as in a ConfigMap volume. The agent notices that by
    /// itself.
    pub(crate) fn rewrite(&self, config: &str) {
        let (file, draft) = (self.rig.path("ostler.yaml"), self.rig.path("draft"));
        fs_err::write(&draft, config).unwrap();
        // The kubelet replaces the link `..data` by rename (pkg/volume/util/atomic_writer.go,
        // `Write`).
        fs_err::rename(draft, file).unwrap();
    }

    /// Ids of a resource at the kubelet.
    pub(crate) fn ids(&self, resource: &str) -> BTreeSet<String> {
        self.kubelet
            .resource_devices(resource)
            .into_keys()
            .collect()
    }

    /// Admits a pod that asks for `count` devices, and removes it. Returns everything that its
    /// container got.
    pub(crate) async fn admit(
        &self,
        resource: &str,
        count: usize,
    ) -> Result<GrantedDevices, AdmissionError> {
        let pod = Pod::new("default", "guest").with_container("main", [(resource, count)]);
        let mut admitted: AdmittedPod = self.kubelet.admit_pod(pod).await?;
        self.kubelet.remove_pod(&admitted.pod);
        Ok(admitted.containers.remove("main").unwrap())
    }

    /// Admits a pod that asks for `count` devices, and removes it. Returns the ids that it got.
    pub(crate) async fn borrow(&self, resource: &str, count: usize) -> BTreeSet<String> {
        let granted = self.admit(resource, count).await.unwrap();
        granted.devices[resource].clone()
    }

    /// Waits until exactly these devices of a resource are unhealthy at the kubelet.
    pub(crate) async fn sick(&self, resource: &str, ids: &[&str]) {
        let wanted = |devices: &PluginDevices| !devices.is_empty() && unhealthy(devices) == ids;
        let found = self.kubelet.wait_devices(resource, wanted, LONG).await;
        found.unwrap_or_else(|error| panic!("unhealthy should be {ids:?}: {error}"));
    }

    /// Waits until a report says that a card is lost.
    pub(crate) async fn lost(&self, id: &str) {
        let lost = |seen: &api::DevicePage| {
            let causes = seen.find_listed(id).map(|entry| &entry.verdict.causes);
            causes.is_some_and(|causes| causes.iter().any(|c| c.kind == CauseKind::Lost))
        };
        self.agent.shows("the lost card", lost).await;
    }

    /// Waits until a sample has this temperature of a card.
    pub(crate) async fn warm(&self, index: usize, celsius: u32) {
        warm(&self.agent, &self.rig.uuid(index), celsius.into()).await;
    }

    /// Changes a card's temperature and waits for it in the samples: earlier reports have arrived
    /// then. The card must answer.
    pub(crate) async fn looks_again(&self, index: usize) {
        let state = self.rig.node.node_state().unwrap();
        let other = 60 + (state.gpus[index].sensors.temperature + 1) % 10;
        let node = &self.rig.node;
        node.set_sensor(&card(index), "temperature", other).unwrap();
        warm(&self.agent, &self.rig.uuid(index), other).await;
    }

    /// Breaches of the kubelet's contract by plugins.
    pub(crate) fn breaches(&self) -> Vec<String> {
        breaches(&self.kubelet)
    }
}

/// Waits until a sample of an agent has this temperature of a card.
pub(crate) async fn warm(agent: &Agent, id: &str, celsius: u64) {
    let warm = |seen: &api::DevicePage| {
        let telemetry = seen
            .find_listed(id)
            .and_then(|entry| entry.telemetry.as_ref());
        telemetry.is_some_and(|t| t.temperature_celsius.map(u64::from) == Some(celsius))
    };
    agent
        .shows(&format!("{celsius} degrees of {id}"), warm)
        .await;
}

/// Breaches of the kubelet's contract by plugins.
pub(crate) fn breaches(kubelet: &Kubelet) -> Vec<String> {
    let violations = kubelet.violations();
    violations.iter().map(ToString::to_string).collect()
}

/// Allocatable of each resource; without resources whose number is 0.
pub(crate) fn allocatable(kubelet: &Kubelet) -> BTreeMap<String, usize> {
    let rows = kubelet.node_status().into_iter();
    let counts = rows.map(|(name, row)| (name, row.allocatable));
    counts.filter(|(_, count)| *count > 0).collect()
}

/// Ids of the unhealthy devices.
pub(crate) fn unhealthy(devices: &PluginDevices) -> Vec<&str> {
    let sick = devices.iter().filter(|(_, device)| !device.healthy);
    sick.map(|(id, _)| id.as_str()).collect()
}

/// Prints a duration for a person. No test depends on it.
pub(crate) fn took(what: &str, since: Instant) {
    #[expect(clippy::print_stderr, reason = "a measurement for a person")]
    {
        eprintln!("{what}: {:.1?}", since.elapsed());
    }
}

/// Target of the card with an index.
pub(crate) fn card(index: usize) -> DeviceTarget {
    DeviceTarget::Index(index)
}

/// Names of the agent's sockets in a folder.
pub(crate) fn sockets(dir: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.starts_with("ostler") && name.ends_with(".sock"))
        .collect()
}

/// Waits until `is_so` returns true. `what` describes it if it does not within [`LONG`].
pub(crate) async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "not within {LONG:?}: {what}");
        sleep(STEP).await;
    }
}

/// Runs a command that shows the node, with the agent at `control` or without one.
pub(crate) async fn shown(rig: &Rig, control: &Path, args: &[&str]) -> Output {
    let mut command = tokio::process::Command::from(ostler());
    command.args(args);
    command.arg("--control-socket").arg(control);
    command.arg("--host-root").arg(rig.node.host_root());
    command.arg("--nvml-library").arg(rig.node.driver_library());
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

/// Output as text.
pub(crate) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}
