//! State of one device in the inventory.

use std::{collections::BTreeMap, sync::Arc};

use health::{Continuity, DeviceRecord, HealthPolicy, Now, SavedDevice};
use model::{AttributeName, Cause, CauseKind, Device, Kind, NodeRole, State, Values, Verdict};

/// A known device: seen at least once, by this agent or an earlier one.
#[derive(Debug)]
pub(super) struct KnownDevice {
    /// Name of the backend that reports the device.
    pub(super) backend: String,
    /// Facts as last read, completed by earlier ones.
    pub(super) device: Arc<Device>,
    /// Number of processes on the device in the newest sample; `None` if not read.
    pub(super) users: Option<usize>,
    pub(super) record: DeviceRecord,
    /// The verdict in the last snapshot.
    pub(super) told: Option<Verdict>,
    /// True if the newest report and the next sample come from the same look, which must count
    /// once.
    pub(super) looked: bool,
    /// True if the driver counts memory errors for the device itself. Matters for partitions.
    counts_errors: bool,
}

// === impl KnownDevice ===

impl KnownDevice {
    pub(super) fn new(backend: &str, device: Arc<Device>) -> Self {
        Self {
            backend: backend.to_owned(),
            device,
            users: None,
            record: DeviceRecord::default(),
            told: None,
            looked: false,
            counts_errors: false,
        }
    }

    /// Restores a device that an earlier agent knew. The earlier verdict counts as published, so
    /// that whatever a reboot or a reload of the driver ended shows as a change.
    pub(super) fn restored(
        backend: &str,
        device: Arc<Device>,
        saved: SavedDevice,
        continuity: Continuity,
        (policy, now): (&HealthPolicy, Now),
    ) -> Self {
        let same = Continuity {
            same_boot: true,
            same_driver: true,
        };
        let before = DeviceRecord::from_saved(saved.clone(), same, policy, now);
        Self {
            told: Some(before.verdict(policy, now)),
            record: DeviceRecord::from_saved(saved, continuity, policy, now),
            ..Self::new(backend, device)
        }
    }

    /// Takes over the facts of a new look. Facts that it does not have are kept from the look
    /// before.
    pub(super) fn update(&mut self, device: &Arc<Device>) {
        let old = &self.device;
        let mut attributes = old.attributes.keys();
        let mut capacity = old.capacity.keys();
        let is_complete = device.failures.is_empty()
            && attributes.all(|name| device.attributes.contains_key(name))
            && capacity.all(|name| device.capacity.contains_key(name));
        self.device = if is_complete {
            Arc::clone(device)
        } else {
            Arc::new(merge_facts(old, device))
        };
    }

    /// Takes in the reading of a check-up.
    pub(super) fn apply_reading(
        &mut self,
        reading: &model::Reading,
        policy: &HealthPolicy,
        now: Now,
    ) {
        if let Values::Working(working) = &reading.values {
            self.counts_errors |= working.ecc_uncorrected.is_some();
        }
        self.record.record_reading(reading, policy, now);
    }

    /// Returns the verdict of a partition: its own, plus the causes of its card. Memory errors of
    /// the card are left out if the driver counts them for the partition itself.
    pub(super) fn join_card_verdict(&self, mut own: Verdict, card: &Verdict) -> Verdict {
        let counted = |cause: &Cause| cause.kind == CauseKind::Ecc && self.counts_errors;
        let add = |own: &mut Vec<Cause>, card: &[Cause]| {
            let known = own.clone();
            let new =
                |cause: &&Cause| !counted(cause) && !known.iter().any(|k| is_same_fault(k, cause));
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

/// Completes the facts of a look that failed in part by earlier ones. A card whose MIG mode could
/// not be read must not count as a whole card, nor one whose display could not be read as one
/// without. Lists every field, so that the compiler finds a new one that is missing here.
fn merge_facts(old: &Device, new: &Device) -> Device {
    let Device {
        id,
        vendor,
        kind,
        index,
        pci,
        numa,
        attributes,
        capacity,
        nodes,
        links,
        shapes,
        failures,
    } = new.clone();
    // Optional calls fail without an entry in `failures`; the device does not lose their facts.
    let attributes = united(&old.attributes, attributes);
    let capacity = united(&old.capacity, capacity);
    if failures.is_empty() {
        return Device {
            attributes,
            capacity,
            ..new.clone()
        };
    }
    let has_own = nodes.iter().any(|node| node.role == NodeRole::Own);
    Device {
        id,
        vendor,
        kind: merge_kind(&old.kind, kind),
        index: index.or(old.index),
        pci: pci.or(old.pci),
        numa: numa.or(old.numa),
        attributes,
        capacity,
        nodes: if has_own { nodes } else { old.nodes.clone() },
        links: if links.is_empty() {
            old.links.clone()
        } else {
            links
        },
        shapes: if shapes.is_empty() {
            old.shapes.clone()
        } else {
            shapes
        },
        failures,
    }
}

/// Returns the old values, replaced by new ones of the same name.
fn united<V: Clone>(
    old: &BTreeMap<AttributeName, V>,
    new: BTreeMap<AttributeName, V>,
) -> BTreeMap<AttributeName, V> {
    let mut all = old.clone();
    all.extend(new);
    all
}

/// Merges the kind. A card that was partitioned stays so until a complete look says otherwise, and
/// a partition keeps a profile that is not reported again.
fn merge_kind(old: &Kind, new: Kind) -> Kind {
    match (old, new) {
        (Kind::Card { partitioned: true }, _) => old.clone(),
        (
            Kind::Partition { profile: known, .. },
            Kind::Partition {
                parent,
                profile: None,
            },
        ) => Kind::Partition {
            parent,
            profile: known.clone(),
        },
        (_, new) => new,
    }
}

/// True if two causes are of the same fault. Events of different codes share a kind; their evidence
/// tells them apart.
fn is_same_fault(one: &Cause, other: &Cause) -> bool {
    one.kind == other.kind && (one.kind != CauseKind::Event || one.evidence == other.evidence)
}

/// True for causes of the state Maintenance.
fn is_in_hand(kind: CauseKind) -> bool {
    matches!(kind, CauseKind::Cordoned | CauseKind::Released)
}

#[cfg(test)]
mod tests {
    use model::{Ancestor, CallFailure, DeviceNode, Link, Shape, Span, Version, names};

    use super::*;

    /// A card with every fact.
    fn complete() -> Device {
        Device {
            kind: Kind::Card { partitioned: true },
            index: "3".parse().ok(),
            pci: "0000:3b:00.0".parse().ok(),
            numa: Some(1),
            nodes: vec![DeviceNode {
                path: "/dev/nvidia3".to_owned(),
                role: NodeRole::Own,
            }],
            links: vec![Link {
                peer: "GPU-2".to_owned().into(),
                ancestor: Some(Ancestor::Node),
                lanes: 12,
                switched: false,
            }],
            shapes: vec![Shape {
                profile: "7g.40gb".to_owned(),
                most: 1,
                memory: Some(1 << 30),
                placements: vec![Span { start: 0, size: 8 }],
            }],
            ..Device::card_of("nvidia", "GPU-3", "A100")
                .with_attribute(
                    nvidia_rules::names::COMPUTE_CAPABILITY,
                    Version::of_two(8, 0),
                )
                .with_attribute(names::DISPLAY, true)
                .with_attribute(names::COHERENT, false)
                .with_memory(1 << 30)
        }
    }

    fn failure() -> CallFailure {
        CallFailure {
            call: "nvmlDeviceGetIndex".to_owned(),
            code: "UNKNOWN".to_owned(),
            fatal: false,
        }
    }

    fn after(look: Device) -> Device {
        let mut known = KnownDevice::new("nvidia", Arc::new(complete()));
        known.update(&Arc::new(look));
        Device::clone(&known.device)
    }

    /// Otherwise, with `exclude: {display: true}`, the card with the monitor would be offered.
    #[test]
    fn a_look_that_failed_loses_no_fact() {
        let blind = Device {
            failures: vec![failure()],
            ..Device::bare_card("nvidia", "GPU-3")
        };
        let expected = Device {
            failures: vec![failure()],
            ..complete()
        };
        assert_eq!(after(blind), expected);
    }

    #[test]
    fn a_call_that_fails_without_a_failure_loses_no_fact_either() {
        let mut look = complete();
        look.attributes.remove(&names::DISPLAY);
        look.attributes.remove(&names::COHERENT);
        assert_eq!(after(look), complete());
    }

    #[test]
    fn a_whole_look_is_taken_as_it_is() {
        let look = Device {
            links: Vec::new(),
            shapes: Vec::new(),
            kind: Kind::Card { partitioned: false },
            ..complete()
                .with_attribute(names::DISPLAY, false)
                .with_attribute(names::COHERENT, true)
        };
        assert_eq!(after(look.clone()), look);
    }
}
