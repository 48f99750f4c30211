//! One call that hangs, with checks of everything that must go on meanwhile.

use std::{collections::BTreeSet, time::Duration};

use api::DevicePage;
use model::{CardRef, Phase, State, StuckCall};
use sim::{DeviceTarget, Effect, kubelet::GrantedDevices};
use tokio::time::sleep;

use crate::{
    process::is_probe,
    rig::{DGX, GPU, LONG, Running, card, eventually, unhealthy},
};

/// Config with short limits, so that the test of all calls is short.
pub(super) const HASTY: &str = "\
probe: {callLimit: 1s, driverCallLimit: 2s, retryPause: 500ms, period: 500ms}
health: {unansweredGrace: 1s, holdDown: 1s, holdDownLimit: 1s}
";

/// Config with short limits and a long grace period: a driver that hangs as a whole makes no card
/// unhealthy during the test.
const LENIENT: &str = "\
probe: {callLimit: 1s, driverCallLimit: 2s, retryPause: 500ms, period: 500ms}
health: {unansweredGrace: 10m, holdDown: 1s, holdDownLimit: 1s}
";

/// Card whose calls hang.
pub(super) const VICTIM: usize = 1;
/// Another card, whose samples must go on.
const OTHER: usize = 4;
/// Temperature that no card has by itself.
const WARM: u32 = 77;

/// Number of pods while the victim may still be healthy, and after it is unhealthy.
const EARLY: usize = 10;
const LATE: usize = 40;

/// Call that hangs, and the node on which it does.
pub(super) struct Case {
    pub(super) profile: &'static str,
    pub(super) call: String,
    /// True if the call is for one card; false if it is for the driver as a whole.
    pub(super) on_card: bool,
}

/// Running case.
struct Play {
    case: Case,
    running: Running,
    resource: &'static str,
    /// Ids of the resource on the card that hangs.
    lost: Vec<String>,
}

// === impl Case ===

impl Case {
    /// Hangs the call, checks everything that must go on, and ends the hang. Then hangs the call
    /// again, and stops the agent meanwhile.
    pub(super) async fn play(self) {
        let mut play = Play::start(self).await;
        play.hang();
        play.borrow(EARLY).await;
        play.named().await;
        play.taken_out().await;
        let got = play.borrow(LATE).await;
        let lost: BTreeSet<String> = play.lost.iter().cloned().collect();
        assert!(got.is_disjoint(&lost), "{} hands out {got:?}", play.case);
        play.others_are_looked_at().await;
        play.recovers().await;
        play.hang();
        play.named().await;
        let probes = play.running.agent.probes();
        play.running.agent.stop().await;
        gone(&probes).await;
        assert_eq!(play.running.breaches(), [""; 0]);
    }

    /// True if only the links between cards depend on the call: then links are missing, and no card
    /// is.
    fn only_links(&self) -> bool {
        let of_links = ["nvmlDeviceGetTopology", "nvmlDeviceGetNvLink"];
        of_links.iter().any(|prefix| self.call.starts_with(prefix))
    }

    /// True if only the wait for events depends on the call.
    fn only_events(&self) -> bool {
        self.call.starts_with("nvmlEventSet")
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {}", self.call, self.profile)
    }
}

// === impl Play ===

impl Play {
    async fn start(case: Case) -> Self {
        let config = if case.on_card { HASTY } else { LENIENT };
        let running = Running::start(case.profile, config).await;
        let resource = match case.profile {
            DGX => GPU,
            _ => "nvidia.com/mig-1g.5gb",
        };
        let victim = running.rig.uuid(VICTIM);
        let snapshot = running.agent.shows("its devices", |_| true).await;
        let of_victim = snapshot.devices.iter().filter(|entry| {
            case.on_card && !case.only_links() && entry.device.card_id().as_str() == victim
        });
        let ids: BTreeSet<String> = of_victim.map(|e| e.device.id.to_string()).collect();
        let offered = running.kubelet.resource_devices(resource);
        let lost = ids.into_iter().filter(|id| offered.contains_key(id));
        Self {
            lost: lost.collect(),
            case,
            running,
            resource,
        }
    }

    /// Lets the call hang, and makes the probe call it.
    fn hang(&self) {
        let target: Option<DeviceTarget> = self.case.on_card.then(|| card(VICTIM));
        let forever = Effect::Hang { millis: None };
        let node = &self.running.rig.node;
        node.set_fault(&self.case.call, target.as_ref(), forever)
            .unwrap();
        // A probe makes some calls only once, at its start.
        self.running.agent.kill_probes();
    }

    /// Admits pods of different sizes. Each must get its devices. Returns all ids.
    async fn borrow(&self, pods: usize) -> BTreeSet<String> {
        let mut got = BTreeSet::new();
        for pod in 0..pods {
            let size = [1, 4][pod % 2];
            let granted = self.admit(size).await;
            got.extend(granted.devices[self.resource].clone());
        }
        got
    }

    /// Admits a pod. Tries again if the kubelet chose a card that has just become unhealthy: it had
    /// not got the new list yet.
    async fn admit(&self, size: usize) -> GrantedDevices {
        let mut tries = 0;
        loop {
            match self.running.admit(self.resource, size).await {
                Ok(granted) => return granted,
                Err(error) if tries < 3 && error.to_string().contains("unhealthy devices") => {
                    tries += 1;
                    sleep(Duration::from_millis(500)).await;
                }
                Err(error) => panic!("{}: {error}", self.case),
            }
        }
    }

    /// Waits until the devices page and the log name the call and its card.
    async fn named(&self) {
        let agent = &self.running.agent;
        let gpus = self.running.rig.node.list_gpus().unwrap();
        let address: CardRef = gpus[VICTIM].pci.to_string().parse().unwrap();
        let address = self.case.on_card.then_some(address);
        let matches = |stuck: &StuckCall| stuck.call == self.case.call && stuck.device == address;
        let what = format!("{} is named, for {address:?}", self.case);
        agent
            .shows(&what, |seen| seen.backends[0].stuck.iter().any(matches))
            .await;
        // A thread of its own writes the log, so that the line may come later than the page.
        eventually(&format!("{} is in the log", self.case), || {
            agent.log().lines().any(|line| {
                let named = line.contains("a driver call does not return");
                let placed = address.is_none_or(|address| line.contains(&address.to_string()));
                named && placed && line.contains(&self.case.call)
            })
        })
        .await;
    }

    /// Waits until exactly the devices on the card that hangs are unhealthy.
    async fn taken_out(&self) {
        let lost: Vec<&str> = self.lost.iter().map(String::as_str).collect();
        self.running.sick(self.resource, &lost).await;
        let seen = self.running.agent.devices().await.unwrap();
        for id in &lost {
            let entry = seen.find_listed(id).unwrap();
            assert_eq!(entry.verdict.state, State::Unhealthy);
            let reason = entry.verdict.join_evidence();
            assert!(reason.contains(&self.case.call), "{}: {reason}", self.case);
        }
    }

    async fn others_are_looked_at(&self) {
        if !self.case.on_card && !self.case.only_events() {
            return;
        }
        let node = &self.running.rig.node;
        node.set_sensor(&card(OTHER), "temperature", WARM.into())
            .unwrap();
        self.running.warm(OTHER, WARM).await;
    }

    /// Ends the hang, and waits until all is as before.
    async fn recovers(&self) {
        let Running { agent, rig, .. } = &self.running;
        rig.node.clear_faults(None).unwrap();
        self.running.complete(LONG).await;
        let well = |seen: &DevicePage| {
            let backend = &seen.backends[0];
            let healthy = |entry: &api::ListedDevice| entry.verdict.state == State::Healthy;
            backend.stuck.is_empty()
                && backend.phase == Phase::Running
                && seen.devices.iter().all(healthy)
        };
        agent
            .shows(&format!("all well after {}", self.case), well)
            .await;
        assert_eq!(
            unhealthy(&self.running.kubelet.resource_devices(self.resource)),
            [""; 0]
        );
    }
}

/// Waits until these probes have ended.
pub(super) async fn gone(probes: &[u32]) {
    eventually("the probes are gone", || {
        !probes.iter().any(|pid| is_probe(*pid))
    })
    .await;
}
