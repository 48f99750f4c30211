//! Findings of check-ups: one card for each check. All fail, are unhealthy, are repaired and are
//! healthy again.

use std::{collections::BTreeSet, time::Duration};

use api::DevicePage;
use health::Check;
use model::{Cause, CauseKind};
use sim::{NewGpu, kubelet::Kubelet, state::Sensors};
use tokio::time::{Instant, sleep};

use super::{
    STRICT,
    table::{FABRIC_JOINING, HOPPER, Trouble, VOLTA, checks, evidence, trouble},
};
use crate::rig::{GPU, LONG, Rig, Running, card};

/// Time between two steps of a counter that grows.
const STEP: Duration = Duration::from_millis(100);
/// Growth of a counter in one step.
const MORE: u64 = 1000;

/// Machine with one card for each check that applies to it.
struct Sweep {
    running: Running,
    checks: Vec<Check>,
    /// Sensors of each card before it fails.
    well: Vec<Sensors>,
}

#[tokio::test]
async fn check_ups_of_hopper_cards() {
    Sweep::start(HOPPER).await.play().await;
}

#[tokio::test]
async fn check_ups_of_volta_cards() {
    Sweep::start(VOLTA).await.play().await;
}

// === impl Sweep ===

impl Sweep {
    async fn start(machine: &str) -> Self {
        let on_it = |check: &Check| match trouble(check) {
            Trouble::Values(on, _) | Trouble::Growth(on, _) | Trouble::Link(on) => on == machine,
            Trouble::Own(_) | Trouble::Nothing => false,
        };
        let mut checks: Vec<Check> = checks().filter(on_it).collect();
        // The cards that are added below have no links and no fabric: checks of these come first.
        let needs_links = |kind| matches!(kind, CauseKind::Link | CauseKind::Condition);
        checks.sort_by_key(|check| !needs_links(check.cause_kind()));
        let rig = Rig::new(machine);
        for _ in rig.node.list_gpus().unwrap().len()..checks.len() {
            rig.node.add_gpu(&NewGpu::default()).unwrap();
        }
        let config = format!("{STRICT}backends: {{nvidia: {{fabricJoin: 1s}}}}\n");
        let running = Running::on(rig, &config).await;
        let gpus = running.rig.node.node_state().unwrap().gpus;
        Self {
            running,
            checks,
            well: gpus.into_iter().map(|gpu| gpu.sensors).collect(),
        }
    }

    async fn play(mut self) {
        let pid = self.running.agent.pid();
        self.shatter();
        let (mut found, begun) = (BTreeSet::new(), Instant::now());
        for step in 1.. {
            self.grow(step);
            let seen = self.running.agent.devices().await.unwrap();
            found.extend(self.found(&seen));
            if found.len() == self.checks.len() {
                break;
            }
            let missing: Vec<&Check> = self.checks.iter().filter(|c| !found.contains(*c)).collect();
            assert!(begun.elapsed() < LONG, "not found: {missing:?}; {seen:#?}");
            sleep(STEP).await;
        }
        self.was_out().await;
        self.cure();
        self.running.complete(LONG).await;
        let silent = |seen: &DevicePage| {
            let mut verdicts = seen.devices.iter().map(|entry| &entry.verdict);
            verdicts.all(|verdict| verdict.warnings.is_empty())
        };
        self.running.agent.shows("no warning is left", silent).await;
        assert_eq!(self.running.agent.pid(), pid);
        assert_eq!(self.running.kubelet.registrations().len(), 1);
        assert_eq!(self.running.breaches(), [""; 0]);
    }

    /// Breaks every card, except those that need a growing counter.
    fn shatter(&self) {
        let node = &self.running.rig.node;
        for (index, check) in self.checks.iter().enumerate() {
            match trouble(check) {
                Trouble::Values(_, values) => {
                    for (name, value) in values {
                        node.set_sensor(&card(index), name, *value).unwrap();
                    }
                }
                Trouble::Link(_) => node.set_link(&card(index), 0, false).unwrap(),
                Trouble::Growth(..) | Trouble::Own(_) | Trouble::Nothing => {}
            }
        }
    }

    /// Lets the counters grow by one step. A rate needs more than one sample.
    fn grow(&self, step: u32) {
        let node = &self.running.rig.node;
        for (index, check) in self.checks.iter().enumerate() {
            if let Trouble::Growth(_, name) = trouble(check) {
                let value = MORE * u64::from(step);
                node.set_sensor(&card(index), name, value).unwrap();
            }
        }
    }

    /// Checks whose finding is a cause or a warning of their card.
    fn found(&self, seen: &DevicePage) -> Vec<Check> {
        let is_found = |(index, check): (usize, &Check)| {
            let told = |cause: &Cause| {
                cause.kind == check.cause_kind() && cause.evidence.contains(evidence(check))
            };
            let id = self.running.rig.uuid(index);
            let verdict = &seen.find_listed(&id).unwrap().verdict;
            let causes = match takes_out(check) {
                true => &verdict.causes,
                false => &verdict.warnings,
            };
            causes.iter().any(told).then(|| check.clone())
        };
        let all = self.checks.iter().enumerate();
        all.filter_map(is_found).collect()
    }

    /// Waits until the kubelet has seen every card unhealthy, except those with a warning only.
    async fn was_out(&self) {
        let cards = self.checks.iter().enumerate();
        let out = cards.filter(|(_, check)| takes_out(check));
        let out: BTreeSet<String> = out.map(|(index, _)| self.running.rig.uuid(index)).collect();
        let told = |kubelet: &Kubelet| -> BTreeSet<String> {
            let devices = kubelet
                .device_lists(GPU)
                .into_iter()
                .flat_map(|list| list.devices);
            let sick = devices.filter(|device| device.health == "Unhealthy");
            sick.map(|device| device.id).collect()
        };
        let all = |kubelet: &Kubelet| told(kubelet).is_superset(&out);
        let wait = self.running.kubelet.wait_until("all are out", all, LONG);
        wait.await.unwrap();
        assert_eq!(told(&self.running.kubelet), out);
    }

    /// Undoes every change.
    fn cure(&mut self) {
        let node = &self.running.rig.node;
        for (index, check) in self.checks.iter().enumerate() {
            let mut cure = |name: &str| {
                let well = *self.well[index].field(name).unwrap();
                node.set_sensor(&card(index), name, well).unwrap();
            };
            match trouble(check) {
                Trouble::Values(_, values) => values.iter().for_each(|(name, _)| cure(name)),
                Trouble::Growth(_, name) => cure(name),
                Trouble::Link(_) => node.set_link(&card(index), 0, true).unwrap(),
                Trouble::Own(_) | Trouble::Nothing => {}
            }
        }
    }
}

/// True if a finding of the check makes its card unhealthy. A card that is joining its fabric gets a
/// warning: it may be in order.
fn takes_out(check: &Check) -> bool {
    !matches!(check, Check::Condition(_, name) if name.as_str() == FABRIC_JOINING)
}
