//! Events at a simulated kubelet since the last check, one line for each.

use std::collections::{BTreeMap, BTreeSet};

use sim::kubelet::{
    Allocation, DeviceCounts, DeviceList, Kubelet, Registration, RegistrationOutcome,
};
use tokio::time::Instant;

/// Describes each event once.
#[derive(Debug)]
pub(in crate::cli) struct KubeletEvents {
    kubelet: Kubelet,
    /// Numbers of the registrations that are printed. They are not answered in order.
    registrations: BTreeSet<usize>,
    /// Arrival of the last printed list, by resource.
    lists: BTreeMap<String, Instant>,
    allocations: usize,
    violations: usize,
    node: BTreeMap<String, DeviceCounts>,
}

// === impl KubeletEvents ===

impl KubeletEvents {
    /// Begins with the first event of the kubelet.
    pub(in crate::cli) fn new(kubelet: Kubelet) -> Self {
        Self {
            kubelet,
            registrations: BTreeSet::new(),
            lists: BTreeMap::new(),
            allocations: 0,
            violations: 0,
            node: BTreeMap::new(),
        }
    }

    /// Describes the new events, by kind, the oldest first within a kind.
    pub(in crate::cli) fn take_lines(&mut self) -> Vec<String> {
        let mut lines = self.new_registrations();
        lines.extend(self.new_lists());
        let allocations = self.kubelet.allocations();
        lines.extend(
            allocations[self.allocations..]
                .iter()
                .map(describe_allocation),
        );
        self.allocations = allocations.len();
        let violations = self.kubelet.violations();
        let told = violations[self.violations..].iter();
        lines.extend(told.map(|violation| format!("breach of the contract: {violation}")));
        self.violations = violations.len();
        lines.extend(self.new_capacities());
        lines
    }

    fn new_registrations(&mut self) -> Vec<String> {
        let all = self.kubelet.registrations();
        let answered = all.iter().enumerate().filter_map(|(number, call)| {
            let line = registration(call)?;
            self.registrations.insert(number).then_some(line)
        });
        answered.collect()
    }

    fn new_lists(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for resource in self.kubelet.node_status().into_keys() {
            let last = self.lists.get(&resource).copied();
            for list in self.kubelet.device_lists(&resource) {
                if last.is_none_or(|last| list.at > last) {
                    lines.push(format!("{resource}: {}", describe_list(&list)));
                    self.lists.insert(resource.clone(), list.at);
                }
            }
        }
        lines
    }

    fn new_capacities(&mut self) -> Vec<String> {
        let node = self.kubelet.node_status();
        let changed = node
            .iter()
            .filter(|(name, now)| self.node.get(*name) != Some(*now));
        let lines = changed.map(|(name, now)| {
            let DeviceCounts {
                capacity,
                allocatable,
            } = now;
            format!("{name}: the node's capacity is {capacity}, allocatable {allocatable}")
        });
        let lines = lines.collect();
        self.node = node;
        lines
    }
}

fn registration(call: &Registration) -> Option<String> {
    let Registration {
        resource, endpoint, ..
    } = call;
    match &call.outcome {
        RegistrationOutcome::Pending => None,
        RegistrationOutcome::Accepted => {
            Some(format!("{resource}: registered on socket {endpoint}"))
        }
        RegistrationOutcome::Refused(message) => {
            Some(format!("{resource}: registration refused: {message}"))
        }
    }
}

fn describe_list(list: &DeviceList) -> String {
    let sick = list
        .devices
        .iter()
        .filter(|device| device.health != "Healthy");
    let sick: Vec<&str> = sick.map(|device| device.id.as_str()).collect();
    let count = list.devices.len();
    match sick.is_empty() {
        true => format!("{count} devices listed, all healthy"),
        false => format!("{count} devices listed, unhealthy: {}", sick.join(", ")),
    }
}

fn describe_allocation(allocation: &Allocation) -> String {
    let Allocation {
        pod,
        container,
        resource,
        took,
        ..
    } = allocation;
    let ids: Vec<&str> = allocation.devices.iter().map(String::as_str).collect();
    format!(
        "{resource}: pod {pod}, container {container} gets {} in {:.1} ms",
        ids.join(", "),
        took.as_secs_f64() * 1000.0
    )
}
