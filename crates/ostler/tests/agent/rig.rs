//! A node to test on: a simulated driver, a simulated kubelet, and a folder for everything.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use sim::{
    Node, Profile, Target,
    kubelet::{Admitted, Devices, Era, Kubelet, Pod, Settings},
};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::process::Agent;

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

/// The usual patience, and looks in quick succession.
pub(crate) const QUICK: &str = "probe: {period: 500ms}\n";

/// A simulated node in a folder of its own. The kubelet and the agents on it come and go.
pub(crate) struct Rig {
    pub(crate) node: Node,
    folder: TempDir,
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
        let folder = tempfile::tempdir().unwrap();
        let profile = Profile::named(profile).unwrap();
        let node = Node::create(&folder.path().join("node"), &profile).unwrap();
        node.trace().unwrap();
        Self { node, folder }
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
        self.folder.path().join(name)
    }

    pub(crate) fn kubelet_dir(&self) -> PathBuf {
        self.path("kubelet")
    }

    pub(crate) fn pod_resources(&self) -> PathBuf {
        self.path("pod-resources/kubelet.sock")
    }

    /// The UUID of a card.
    pub(crate) fn uuid(&self, index: usize) -> String {
        self.node.gpus().unwrap()[index].uuid.clone()
    }

    /// How often each call but the wait for events was made.
    pub(crate) fn calls(&self) -> usize {
        let calls = self.node.calls().unwrap();
        let waits = |call: &String| call.starts_with("nvmlEventSetWait");
        calls.iter().filter(|call| !waits(call)).count()
    }

    /// Waits until a probe listens to the events of all cards.
    pub(crate) async fn listening(&self) {
        eventually("a probe waits for events", || {
            let calls = self.node.calls().unwrap();
            calls
                .iter()
                .any(|call| call.starts_with("nvmlEventSetWait"))
        })
        .await;
    }
}

// === impl Running ===

impl Running {
    /// Starts everything and waits until the kubelet counts every device.
    pub(crate) async fn start(profile: &str, config: &str) -> Self {
        let rig = Rig::new(profile);
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

    /// Admits a pod that wants `count` devices, removes it again, and says what it got.
    pub(crate) async fn borrow(&self, resource: &str, count: usize) -> BTreeSet<String> {
        let pod = Pod::new("default", "guest").container("main", [(resource, count)]);
        let admitted: Admitted = self.kubelet.admit(pod).await.unwrap();
        self.kubelet.remove(&admitted.pod);
        admitted.containers["main"].devices[resource].clone()
    }

    /// Waits until exactly these devices of a resource are unhealthy at the kubelet.
    pub(crate) async fn sick(&self, resource: &str, ids: &[&str]) {
        let wanted = |devices: &Devices| !devices.is_empty() && unhealthy(devices) == ids;
        let found = self.kubelet.wait(resource, wanted, LONG).await;
        found.unwrap_or_else(|error| panic!("unhealthy should be {ids:?}: {error}"));
    }

    /// What plugins did wrong.
    pub(crate) fn breaches(&self) -> Vec<String> {
        breaches(&self.kubelet)
    }
}

/// What plugins did wrong.
pub(crate) fn breaches(kubelet: &Kubelet) -> Vec<String> {
    let violations = kubelet.violations();
    violations.iter().map(ToString::to_string).collect()
}

/// The ids of the unhealthy devices.
pub(crate) fn unhealthy(devices: &Devices) -> Vec<&str> {
    let sick = devices.iter().filter(|(_, device)| !device.healthy);
    sick.map(|(id, _)| id.as_str()).collect()
}

/// The card at an index.
pub(crate) fn card(index: usize) -> Target {
    Target::Index(index)
}

/// The sockets in a folder that are not the kubelet's.
pub(crate) fn sockets(dir: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("ostler")).collect()
}

/// Waits until something is so.
pub(crate) async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "not within {LONG:?}: {what}");
        sleep(STEP).await;
    }
}
