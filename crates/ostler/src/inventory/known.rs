//! What the inventory keeps of one device.

use health::{Now, Policy, Record};
use model::{Device, Entry, Kind, NodeRole, Telemetry};

/// A device that was seen at least once.
#[derive(Debug)]
pub(super) struct Known {
    /// Whose device it is.
    pub(super) backend: String,
    /// The facts as they were last read.
    pub(super) device: Device,
    pub(super) telemetry: Option<Telemetry>,
    pub(super) record: Record,
}

// === impl Known ===

impl Known {
    pub(super) fn new(backend: &str, device: Device) -> Self {
        Self {
            backend: backend.to_owned(),
            device,
            telemetry: None,
            record: Record::default(),
        }
    }

    /// Takes over what was read now. What a look with failed calls does not tell is kept from the
    /// look before, lest a card whose mode could not be read counts as a whole one.
    pub(super) fn update(&mut self, device: &Device) {
        let old = std::mem::replace(&mut self.device, device.clone());
        let new = &mut self.device;
        if new.failures.is_empty() {
            return;
        }
        let partitioned = Kind::Card { partitioned: true };
        if old.kind == partitioned {
            new.kind = partitioned;
        }
        if new.model == "unknown" {
            new.model = old.model;
        }
        if !new.nodes.iter().any(|node| node.role == NodeRole::Own) {
            new.nodes = old.nodes;
        }
        new.index = new.index.take().or(old.index);
        new.pci = new.pci.or(old.pci);
        new.numa = new.numa.or(old.numa);
        new.memory_bytes = new.memory_bytes.or(old.memory_bytes);
        new.compute_capability = new.compute_capability.take().or(old.compute_capability);
    }

    /// The device with its verdict at this moment.
    pub(super) fn entry(&self, policy: Policy, now: Now) -> Entry {
        Entry {
            device: self.device.clone(),
            verdict: self.record.verdict(policy, now),
            telemetry: self.telemetry.clone(),
        }
    }
}
