//! What the inventory keeps of one device.

use health::{Continuity, Now, Policy, Record, Saved};
use model::{Cause, CauseKind, Device, Kind, NodeRole, State, Values, Verdict};

/// A device that was seen at least once.
#[derive(Debug)]
pub(super) struct Known {
    /// Whose device it is.
    pub(super) backend: String,
    /// The facts as they were last read.
    pub(super) device: Device,
    /// Number of processes on it by the newest sample, where the probe asks.
    pub(super) users: Option<usize>,
    pub(super) record: Record,
    /// The verdict that was told last.
    pub(super) told: Option<Verdict>,
    /// Whether the picture is of the look whose sample comes next.
    pub(super) looked: bool,
    /// Whether its memory errors are counted apart from its card's.
    counts_errors: bool,
}

// === impl Known ===

impl Known {
    pub(super) fn new(backend: &str, device: Device) -> Self {
        Self {
            backend: backend.to_owned(),
            device,
            users: None,
            record: Record::default(),
            told: None,
            looked: false,
            counts_errors: false,
        }
    }

    /// A device that an agent knew before this one. What a restart of the node or the driver
    /// ended is told as a change.
    pub(super) fn restored(
        backend: &str,
        device: Device,
        saved: Saved,
        continuity: Continuity,
        (policy, now): (&Policy, Now),
    ) -> Self {
        let same = Continuity {
            same_boot: true,
            same_driver: true,
        };
        let before = Record::restore(saved.clone(), same, policy, now);
        Self {
            told: Some(before.verdict(policy, now)),
            record: Record::restore(saved, continuity, policy, now),
            ..Self::new(backend, device)
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

    /// Takes in a check-up.
    pub(super) fn read(&mut self, reading: &model::Reading, policy: &Policy, now: Now) {
        if let Values::Working(working) = &reading.values {
            self.counts_errors |= working.ecc_uncorrected.is_some();
        }
        self.record.read(reading, policy, now);
    }

    /// What is held of it, given what is held of its card: a partition is only as well as that,
    /// but for memory errors that are counted for each.
    pub(super) fn joined(&self, mut own: Verdict, card: &Verdict) -> Verdict {
        let counted = |cause: &Cause| cause.kind == CauseKind::Ecc && self.counts_errors;
        let add = |own: &mut Vec<Cause>, card: &[Cause]| {
            let known = own.clone();
            let new = |cause: &&Cause| !counted(cause) && !known.iter().any(|k| alike(k, cause));
            own.extend(card.iter().filter(new).cloned());
        };
        add(&mut own.warnings, &card.warnings);
        add(&mut own.causes, &card.causes);
        if !card.causes.iter().all(counted) {
            let in_hand = own.causes.iter().any(|cause| is_in_hand(cause.kind));
            own.state = match in_hand {
                true => State::Maintenance,
                false => own.state.max(card.state.min(State::Unhealthy)),
            };
        }
        own
    }
}

/// Whether two causes tell of the same trouble; of events there are several kinds in one.
fn alike(one: &Cause, other: &Cause) -> bool {
    one.kind == other.kind && (one.kind != CauseKind::Event || one.evidence == other.evidence)
}

fn is_in_hand(kind: CauseKind) -> bool {
    matches!(kind, CauseKind::Cordoned | CauseKind::Released)
}
