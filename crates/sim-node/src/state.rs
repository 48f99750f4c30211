//! The whole state of a simulated node, as it stands in `node.json`.
//!
//! It is what the commands write and what the driver library reads. Fields that a person may
//! leave out have defaults, so that older files stay readable.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bus::BusId;

mod board;
mod count;
mod kind;
mod machine;
mod place;
mod sensor;
mod setting;

pub use board::Board;
pub use kind::{Clocks, MigProfile, Model, Power, Thresholds};
pub use machine::{Fabric, Machine, Platform, Tegra, VgpuHost};
pub use place::{Place, by_uuid};
pub use sensor::Sensors;
pub use setting::{Instance, Process, Settings, Work};

/// The state of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Grows with each change.
    pub generation: u64,
    /// The name of the profile the node was made from.
    pub profile: String,
    /// The driver's versions.
    pub driver: Driver,
    /// What the machine is, apart from its cards.
    #[serde(default)]
    pub machine: Machine,
    /// The machine's NUMA nodes.
    #[serde(default)]
    pub numa: Vec<NumaNode>,
    /// What the cards are, by the name that [`Gpu::model`] uses.
    #[serde(default)]
    pub models: BTreeMap<String, Model>,
    /// The cards in order of their PCI addresses; the position is the driver's index.
    #[serde(default)]
    pub gpus: Vec<Gpu>,
    /// Cards that were taken out, so that they can be put back as they were.
    #[serde(default)]
    pub removed: Vec<Gpu>,
    /// PCI functions that are no GPUs.
    #[serde(default)]
    pub others: Vec<Other>,
    /// What goes wrong on purpose.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// How often the machine was started again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reboots: u64,
}

/// The driver's versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    /// The kernel driver's, e.g. `580.95.05`.
    pub version: String,
    /// The management library's, e.g. `13.580.95.05`.
    pub nvml: String,
    /// CUDA's, in the driver's notation: 13000 is 13.0.
    pub cuda: i32,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumaNode {
    /// Its number.
    pub node: u32,
    /// Its CPUs as the kernel lists them: `0-15,128-143`.
    pub cpus: String,
    /// Its memory.
    pub memory_gib: u64,
}

/// A PCI function that is no GPU: an NVSwitch, a network card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Other {
    /// Where it sits.
    pub pci: BusId,
    /// `vendor:device` in hex, e.g. `15b3:101b`.
    pub id: String,
    /// The PCI class in hex, e.g. `020700`.
    pub class: String,
    /// The kernel driver bound to it.
    pub driver: String,
    /// The NUMA node it is attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u32>,
    /// What lies between it and the processor, outermost first, joined by slashes.
    pub under: String,
}

/// One card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gpu {
    /// `GPU-…`.
    pub uuid: String,
    /// The key of its model.
    pub model: String,
    /// The number of its device node.
    pub minor: u32,
    /// Where it sits.
    pub pci: BusId,
    /// What lies between it and the processor, outermost first, joined by slashes.
    pub under: String,
    /// The NUMA node it is attached to.
    #[serde(default)]
    pub numa: Option<u32>,
    /// The NUMA node that its own memory forms, on a machine where processor and card share one
    /// address space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_numa: Option<u32>,
    /// The serial number.
    pub serial: String,
    /// Whether it has fallen off the bus.
    #[serde(default)]
    pub lost: bool,
    /// Whether MIG mode is on.
    #[serde(default)]
    pub mig_enabled: bool,
    /// Its MIG devices, in order of their instance ids; the position is the driver's index.
    #[serde(default)]
    pub migs: Vec<Mig>,
    /// Its NVLinks; the position is the link's number.
    #[serde(default)]
    pub links: Vec<NvLink>,
    /// What it measures now.
    #[serde(default)]
    pub sensors: Sensors,
    /// When it was last reset, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<u64>,
    /// What was set on it.
    #[serde(default, skip_serializing_if = "Settings::untouched")]
    pub settings: Settings,
    /// Its GPU instances that need no MIG device to exist; every MIG device has one too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<Instance>,
    /// The processes that use it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Process>,
}

/// One MIG device: a compute instance in a GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mig {
    /// `MIG-…`.
    pub uuid: String,
    /// The GPU instance.
    pub gi: u32,
    /// The compute instance in it.
    pub ci: u32,
    /// The name of the GPU instance's [`MigProfile`].
    pub profile: String,
    /// The compute slices of the compute instance; fewer than the GPU instance's if it is shared.
    pub slices: u32,
    /// The first memory slice of the GPU instance.
    pub start: u32,
    /// Memory in use, in MiB.
    #[serde(default)]
    pub memory_used_mib: u64,
    /// Errors in the memories on its part of the chip that were not repaired.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ecc_uncorrected: u64,
}

/// One NVLink of a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NvLink {
    /// The PCI function at the other end.
    pub remote: BusId,
    /// Whether that is an NVSwitch.
    #[serde(default)]
    pub switch: bool,
    /// Whether it is up.
    pub active: bool,
}

/// Something that goes wrong on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The NVML function; without a version it stands for all its versions, `*` for all functions.
    pub call: String,
    /// The UUID it is for; without one, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// What happens.
    #[serde(flatten)]
    pub effect: Effect,
}

/// What a faulty call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "lowercase")]
pub enum Effect {
    /// It does not return until the fault is cleared, or until the time is over.
    Hang {
        /// How long; for ever if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        millis: Option<u64>,
    },
    /// It returns an NVML error code.
    Fail {
        /// The code.
        code: u32,
    },
}

/// One line of `events.jsonl`: something the driver tells those who wait for events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The card's UUID.
    pub gpu: String,
    /// The GPU instance it concerns; absent for the whole card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gi: Option<u32>,
    /// The compute instance it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci: Option<u32>,
    /// NVML's event type.
    pub kind: u64,
    /// The XID, or zero.
    pub data: u64,
}

// === impl State ===

impl State {
    /// The first thing that makes the state unusable, for a person.
    ///
    /// # Errors
    /// Names the card and what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        for gpu in &self.gpus {
            let Some(model) = self.models.get(&gpu.model) else {
                return Err(format!(
                    "{} has the unknown model `{}`",
                    gpu.uuid, gpu.model
                ));
            };
            let migs = gpu.migs.iter().map(|mig| (&mig.uuid, &mig.profile));
            let alone = gpu.instances.iter().map(|one| (&gpu.uuid, &one.profile));
            for (uuid, profile) in migs.chain(alone) {
                if model.shape(profile).is_none() {
                    return Err(format!("{uuid} has the unknown MIG profile `{profile}`"));
                }
            }
        }
        Ok(())
    }

    /// The CPUs near a NUMA node, as the kernel lists them; all of them for no node.
    pub fn cpus(&self, numa: Option<u32>) -> String {
        let near = |n: &&NumaNode| numa.is_none_or(|wanted| n.node == wanted);
        let lists = self.numa.iter().filter(near).map(|n| n.cpus.as_str());
        lists.collect::<Vec<_>>().join(",")
    }
}

// === impl Mig ===

impl Mig {
    /// The name with the compute slices where they differ: `1c.3g.20gb`.
    pub fn name(&self, shape: &MigProfile) -> String {
        if self.slices == shape.slices {
            shape.name.clone()
        } else {
            format!("{}c.{}", self.slices, shape.name)
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
