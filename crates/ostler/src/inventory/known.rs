//! What the inventory keeps of one device.

use health::{Now, Policy, Record};
use model::{Device, Entry, Telemetry};

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

    /// Takes over what was read now. A look in which calls failed knows less than the one before:
    /// of it only the failures are kept, lest a card whose mode cannot be read counts as another.
    pub(super) fn update(&mut self, device: &Device) {
        if device.failures.is_empty() {
            self.device.clone_from(device);
        } else {
            self.device.failures.clone_from(&device.failures);
        }
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
