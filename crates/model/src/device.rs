//! One device as its vendor describes it: facts only, no verdicts and no resource names.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CardRef, DeviceId, Index, Link, PciAddress};

/// One thing that can be handed to a pod: a whole card or a partition of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// The vendor's stable id.
    pub id: DeviceId,
    /// Who made it, in lower case: `nvidia`.
    pub vendor: String,
    /// Whole card or partition.
    #[serde(flatten)]
    pub kind: Kind,
    /// The product name, e.g. `NVIDIA A100-SXM4-40GB`; a partition has its card's.
    pub model: String,
    /// The driver's enumeration index. Not stable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<Index>,
    /// Where it sits; a partition has its card's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci: Option<PciAddress>,
    /// The NUMA node it is attached to, where the machine says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u32>,
    /// Total memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The CUDA compute capability, e.g. `8.0`; other vendors leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
    /// Whether a display is attached to the card, where the driver says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<bool>,
    /// Whether processor and card see each other's memory under the same addresses in hardware
    /// (ATS), where the driver says so; a partition has its card's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coherent: Option<bool>,
    /// Every device node a container needs to use it, as host paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<DeviceNode>,
    /// Its links to other devices of the same probe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// Calls that failed while its facts were read. "Not supported" is not a failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<CallFailure>,
}

/// Whole card or partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Kind {
    /// A whole card.
    Card {
        /// Whether it is in a mode where only its partitions can be used (MIG enabled).
        #[serde(default)]
        partitioned: bool,
    },
    /// A part of a card with memory and engines of its own (a MIG device).
    Partition {
        /// The card it is a part of.
        parent: DeviceId,
        /// The vendor's name of its shape, e.g. `1g.5gb`.
        profile: String,
        /// The GPU instance on the card.
        gpu_instance: u32,
        /// The compute instance in the GPU instance.
        compute_instance: u32,
    },
}

/// A device node on the host.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct DeviceNode {
    /// The path on the host, e.g. `/dev/nvidia0`.
    pub path: String,
    /// What it is for.
    pub role: NodeRole,
}

/// What a device node is for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum NodeRole {
    /// Shared by all devices of the driver, e.g. `/dev/nvidiactl`.
    Control,
    /// The device's own.
    Own,
    /// The right to use one partition, e.g. `/dev/nvidia-caps/nvidia-cap21`.
    Capability,
}

/// A driver call that failed for one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallFailure {
    /// The call's name as the vendor writes it.
    pub call: String,
    /// The vendor's code, e.g. `GPU_IS_LOST`.
    pub code: String,
    /// Whether it means that the device cannot be used as it is: lost, in need of a reset, without
    /// its device node.
    #[serde(default)]
    pub fatal: bool,
}

// === impl Device ===

impl Device {
    /// A whole card of which nothing else is known.
    pub fn card_of(vendor: &str, id: impl Into<DeviceId>, model: &str) -> Self {
        Self {
            id: id.into(),
            vendor: vendor.to_owned(),
            kind: Kind::Card { partitioned: false },
            model: model.to_owned(),
            index: None,
            pci: None,
            numa: None,
            memory_bytes: None,
            compute_capability: None,
            display: None,
            coherent: None,
            nodes: Vec::new(),
            links: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// The card as probes, orders and stuck calls name it; `None` for a device without PCI address
    /// and index.
    pub fn card_ref(&self) -> Option<CardRef> {
        let index = self.index.map(|index| CardRef::Index(index.card));
        self.pci.map(CardRef::Pci).or(index)
    }

    /// The card this is a part of, or the card itself.
    pub fn card(&self) -> &DeviceId {
        match &self.kind {
            Kind::Card { .. } => &self.id,
            Kind::Partition { parent, .. } => parent,
        }
    }
}

// === impl CallFailure ===

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.call, self.code)
    }
}
