//! One device as its vendor describes it: facts only, no verdicts and no resource names.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AttributeName, Attributes, Capacity, CardRef, DeviceId, Index, Link, PciAddress, Shape, Value,
    known, names,
};

/// One thing that can be handed to a pod: a whole card or a partition of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// The vendor's stable id.
    pub id: DeviceId,
    /// Its vendor, in lower case: the name of its backend, which the agent sets whatever a probe says.
    #[serde(default)]
    pub vendor: String,
    /// Whole card or partition; a whole card where a probe does not say it.
    #[serde(default)]
    pub kind: Kind,
    /// The driver's enumeration index. Not stable.
    #[serde(
        default,
        deserialize_with = "known::text",
        skip_serializing_if = "Option::is_none"
    )]
    pub index: Option<Index>,
    /// Where it sits; a partition has its card's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci: Option<PciAddress>,
    /// The NUMA node it is attached to, where the machine says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u32>,
    /// Its facts by name; [`names`] has those that the product knows.
    #[serde(
        default,
        deserialize_with = "known::facts",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub attributes: Attributes,
    /// The amounts that it has of something, by name: bytes of memory, numbers of engines.
    #[serde(
        default,
        deserialize_with = "known::facts",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub capacity: Capacity,
    /// Every device node a container needs to use it, as host paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<DeviceNode>,
    /// Its links to other devices of the same probe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// The partitions that are possible on it, whether it is partitioned or not. A partition has none.
    #[serde(
        default,
        deserialize_with = "known::list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub shapes: Vec<Shape>,
    /// Calls that failed while its facts were read. "Not supported" is not a failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<CallFailure>,
}

/// Whole card or partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
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
        /// The vendor's name of its shape, e.g. `1g.5gb`, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<String>,
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

// === impl Kind ===

impl Default for Kind {
    /// A whole card that is not partitioned.
    fn default() -> Self {
        Self::Card { partitioned: false }
    }
}

// === impl Device ===

impl Device {
    /// A whole card of which nothing is known but the product name.
    pub fn card_of(vendor: &str, id: impl Into<DeviceId>, product: &str) -> Self {
        Self {
            attributes: Attributes::from([(names::PRODUCT, product.into())]),
            ..Self::unnamed(vendor, id)
        }
    }

    /// A whole card of which nothing is known.
    pub fn unnamed(vendor: &str, id: impl Into<DeviceId>) -> Self {
        Self {
            id: id.into(),
            vendor: vendor.to_owned(),
            kind: Kind::default(),
            index: None,
            pci: None,
            numa: None,
            attributes: Attributes::new(),
            capacity: Capacity::new(),
            nodes: Vec::new(),
            links: Vec::new(),
            shapes: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// The same device with an attribute more.
    #[must_use]
    pub fn with(mut self, name: AttributeName, value: impl Into<Value>) -> Self {
        self.attributes.insert(name, value.into());
        self
    }

    /// The same device with that many bytes of memory.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.capacity.insert(names::MEMORY, bytes);
        self
    }

    /// The product name, e.g. `NVIDIA A100-SXM4-40GB`; a partition has its card's.
    pub fn product(&self) -> Option<&str> {
        self.attributes.get(&names::PRODUCT)?.as_text()
    }

    /// The bytes of memory.
    pub fn memory(&self) -> Option<u64> {
        self.capacity.get(&names::MEMORY).copied()
    }

    /// An attribute that is yes or no; `None` where it is not known.
    pub fn flag(&self, name: &AttributeName) -> Option<bool> {
        self.attributes.get(name)?.as_bool()
    }

    /// The vendor's name of a partition's shape, where it is one and its shape is known.
    pub fn profile(&self) -> Option<&str> {
        match &self.kind {
            Kind::Card { .. } => None,
            Kind::Partition { profile, .. } => profile.as_deref(),
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
