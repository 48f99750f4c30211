//! State of a simulated node, as stored in `node.json`.
//!
//! The commands write it and the driver library reads it. Fields that a reader may leave out have
//! defaults, so that older files stay readable.

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
pub use kind::{GpuModel, MaxClocks, MigProfile, PowerLimits, TemperatureLimits};
pub use machine::{MachineFacts, NodePlatform, NvlinkFabric, Tegra, VgpuHost};
pub use place::{DevicePlace, by_uuid};
pub use sensor::Sensors;
pub use setting::{CardSettings, GpuInstance, GpuProcess, ProcessWork};

/// State of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeState {
    /// Number of the change; grows by one with each change.
    pub generation: u64,
    /// Name of the profile that the node was created from.
    pub profile: String,
    /// Versions of the driver.
    pub driver: DriverVersions,
    /// Facts of the machine, apart from its cards.
    #[serde(default)]
    pub machine: MachineFacts,
    /// NUMA nodes of the machine.
    #[serde(default)]
    pub numa: Vec<NumaNode>,
    /// Models of the cards, by the key in [`Gpu::model`].
    #[serde(default)]
    pub models: BTreeMap<String, GpuModel>,
    /// Cards, sorted by PCI address; the position is the driver's index.
    #[serde(default)]
    pub gpus: Vec<Gpu>,
    /// Removed cards, kept so that they can be inserted again as they were.
    #[serde(default)]
    pub removed: Vec<Gpu>,
    /// PCI functions that are not GPUs.
    #[serde(default)]
    pub others: Vec<OtherFunction>,
    /// Simulated faults.
    #[serde(default)]
    pub faults: Vec<NvmlFault>,
    /// Number of reboots of the machine.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reboots: u64,
}

/// Versions of the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverVersions {
    /// Version of the kernel driver, e.g. `580.95.05`.
    pub version: String,
    /// Version of the management library, e.g. `13.580.95.05`.
    pub nvml: String,
    /// CUDA version in the driver's notation: 13000 means 13.0.
    pub cuda: i32,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumaNode {
    /// Number of the node.
    pub node: u32,
    /// CPUs of the node as the kernel lists them: `0-15,128-143`.
    pub cpus: String,
    /// Memory of the node.
    pub memory_gib: u64,
}

/// A PCI function that is not a GPU: an NVSwitch, a network card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherFunction {
    /// PCI address.
    pub pci: BusId,
    /// `vendor:device` in hex, e.g. `15b3:101b`.
    pub id: String,
    /// PCI class in hex, e.g. `020700`.
    pub class: String,
    /// Kernel driver that the function is bound to.
    pub driver: String,
    /// NUMA node of the function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u32>,
    /// PCI root and bridges above the function, outermost first, joined by slashes.
    pub under: String,
}

/// A card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gpu {
    /// `GPU-…`.
    pub uuid: String,
    /// Key of the model.
    pub model: String,
    /// Minor number of the device node.
    pub minor: u32,
    /// PCI address.
    pub pci: BusId,
    /// PCI root and bridges above the card, outermost first, joined by slashes.
    pub under: String,
    /// NUMA node of the card.
    #[serde(default)]
    pub numa: Option<u32>,
    /// NUMA node of the card's own memory. Only machines on which processor and card share one
    /// address space have such a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_numa: Option<u32>,
    /// Serial number.
    pub serial: String,
    /// True if the card has fallen off the bus.
    #[serde(default)]
    pub lost: bool,
    /// True if MIG mode is on.
    #[serde(default)]
    pub mig_enabled: bool,
    /// MIG devices, sorted by their instance ids; the position is the driver's index.
    #[serde(default)]
    pub migs: Vec<MigDevice>,
    /// NVLinks; the position is the number of the link.
    #[serde(default)]
    pub links: Vec<NvLink>,
    /// Current sensor values and counters.
    #[serde(default)]
    pub sensors: Sensors,
    /// Time of the last reset, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<u64>,
    /// Settings that an administrator or a program has changed.
    #[serde(default, skip_serializing_if = "CardSettings::untouched")]
    pub settings: CardSettings,
    /// GPU instances that exist without a MIG device. Each MIG device implies one more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<GpuInstance>,
    /// Processes that use the card.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<GpuProcess>,
}

/// A MIG device: a compute instance in a GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigDevice {
    /// `MIG-…`.
    pub uuid: String,
    /// Id of the GPU instance.
    pub gi: u32,
    /// Id of the compute instance in it.
    pub ci: u32,
    /// Name of the GPU instance's [`MigProfile`].
    pub profile: String,
    /// Compute slices of the compute instance; fewer than the GPU instance's if that is shared.
    pub slices: u32,
    /// First memory slice of the GPU instance.
    pub start: u32,
    /// Memory in use, in MiB.
    #[serde(default)]
    pub memory_used_mib: u64,
    /// Uncorrected errors in the SRAM of the device's part of the chip.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ecc_uncorrected: u64,
}

/// An NVLink of a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NvLink {
    /// PCI function at the other end.
    pub remote: BusId,
    /// True if the other end is an NVSwitch.
    #[serde(default)]
    pub switch: bool,
    /// True if the link is up.
    pub active: bool,
}

/// A simulated fault of an NVML call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NvmlFault {
    /// NVML function. A name without a version suffix stands for all versions, `*` for all
    /// functions.
    pub call: String,
    /// UUID of the device; all devices if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Behaviour of the call.
    #[serde(flatten)]
    pub effect: Effect,
}

/// Behaviour of a call with a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "lowercase")]
pub enum Effect {
    /// The call does not return until the fault is cleared, or until the time is over.
    Hang {
        /// Time to hang, in milliseconds; for ever if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        millis: Option<u64>,
    },
    /// The call returns an NVML error code.
    Fail {
        /// NVML return code.
        code: u32,
    },
}

/// Line of `events.jsonl`: an event that the driver reports to event sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEvent {
    /// UUID of the card.
    pub gpu: String,
    /// Id of the GPU instance; absent for the whole card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gi: Option<u32>,
    /// Id of the compute instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci: Option<u32>,
    /// Event type of NVML.
    pub kind: u64,
    /// XID code, or zero.
    pub data: u64,
}

// === impl NodeState ===

impl NodeState {
    /// Checks that the state is usable.
    ///
    /// # Errors
    /// Describes the first problem and names the card.
    pub fn check_state(&self) -> Result<(), String> {
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
                if model.find_shape(profile).is_none() {
                    return Err(format!("{uuid} has the unknown MIG profile `{profile}`"));
                }
            }
        }
        Ok(())
    }

    /// CPUs of a NUMA node as the kernel lists them; all CPUs for `None`.
    pub fn cpus_near(&self, numa: Option<u32>) -> String {
        let near = |n: &&NumaNode| numa.is_none_or(|wanted| n.node == wanted);
        let lists = self.numa.iter().filter(near).map(|n| n.cpus.as_str());
        lists.collect::<Vec<_>>().join(",")
    }
}

// === impl MigDevice ===

impl MigDevice {
    /// Name of the MIG device. It has the compute slices if they differ from the GPU instance's:
    /// `1c.3g.20gb`.
    pub fn mig_name(&self, shape: &MigProfile) -> String {
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
