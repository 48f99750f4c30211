//! Device as its vendor describes it: facts only, without verdict and resource name.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AttributeName, Attributes, Capacities, CardRef, DeviceId, Index, Link, PciAddress, Shape,
    Value, known, names,
};

/// Device that can be handed to a pod: a whole card, or a partition of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Vendor's stable id.
    pub id: DeviceId,
    /// Vendor in lower case. The agent sets it to the name of the backend, whatever a probe says.
    #[serde(default)]
    pub vendor: String,
    /// Card or partition. A device is a card unless the probe says otherwise.
    #[serde(default)]
    pub kind: Kind,
    /// Enumeration index of the driver. Not stable across reboots.
    #[serde(
        default,
        deserialize_with = "known::text",
        skip_serializing_if = "Option::is_none"
    )]
    pub index: Option<Index>,
    /// PCI address; a partition has the address of its card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci: Option<PciAddress>,
    /// NUMA node of the device; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u32>,
    /// Attributes by name. [`names`] has those that the product knows.
    #[serde(
        default,
        deserialize_with = "known::facts",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub attributes: Attributes,
    /// Capacities by name: bytes of memory, numbers of engines.
    #[serde(
        default,
        deserialize_with = "known::facts",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub capacity: Capacities,
    /// Device nodes that a container needs for the device, as host paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<DeviceNode>,
    /// Links to other devices of the same probe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// Partitions that are possible on the card, partitioned or not. Empty for a partition.
    #[serde(
        default,
        deserialize_with = "known::list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub shapes: Vec<Shape>,
    /// Calls that failed while the facts were read. "Not supported" is not a failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<CallFailure>,
}

/// Card or partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Whole card.
    Card {
        /// True if the card is in a mode in which only its partitions can be used (MIG enabled).
        #[serde(default)]
        partitioned: bool,
    },
    /// Part of a card with memory and engines of its own (MIG device).
    Partition {
        /// Card of the partition.
        parent: DeviceId,
        /// Vendor's name of the partition's shape, e.g. `1g.5gb`; absent if not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<String>,
    },
}

/// Device node on the host.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct DeviceNode {
    /// Path on the host, e.g. `/dev/nvidia0`.
    pub path: String,
    /// Role of the node.
    pub role: NodeRole,
}

/// Role of a device node.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum NodeRole {
    /// Shared by all devices of the driver, e.g. `/dev/nvidiactl`.
    Control,
    /// Node of this device only.
    Own,
    /// Permission to use one partition, e.g. `/dev/nvidia-caps/nvidia-cap21`.
    Capability,
}

/// Driver call that failed for one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallFailure {
    /// Name of the call, as the vendor writes it.
    pub call: String,
    /// Vendor's error code, e.g. `GPU_IS_LOST`.
    pub code: String,
    /// True if the error means that the device cannot be used: it is lost, needs a reset, or has no
    /// device node.
    #[serde(default)]
    pub fatal: bool,
}

// === impl Kind ===

impl Default for Kind {
    /// Returns a whole card without partitions.
    fn default() -> Self {
        Self::Card { partitioned: false }
    }
}

// === impl Device ===

impl Device {
    /// Creates a whole card with a product name, and no other fact.
    ///
    /// ```
    /// use model::{Device, names};
    ///
    /// let card = Device::card_of("crypto", "card-0", "Crypto 9").with_attribute(names::DISPLAY, false);
    /// assert_eq!(card.product_name(), Some("Crypto 9"));
    /// ```
    pub fn card_of(vendor: &str, id: impl Into<DeviceId>, product: &str) -> Self {
        Self {
            attributes: Attributes::from([(names::PRODUCT, product.into())]),
            ..Self::bare_card(vendor, id)
        }
    }

    /// Creates a whole card without any fact.
    pub fn bare_card(vendor: &str, id: impl Into<DeviceId>) -> Self {
        Self {
            id: id.into(),
            vendor: vendor.to_owned(),
            kind: Kind::default(),
            index: None,
            pci: None,
            numa: None,
            attributes: Attributes::new(),
            capacity: Capacities::new(),
            nodes: Vec::new(),
            links: Vec::new(),
            shapes: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with_attribute(mut self, name: AttributeName, value: impl Into<Value>) -> Self {
        self.attributes.insert(name, value.into());
        self
    }

    /// Sets the bytes of memory.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.capacity.insert(names::MEMORY, bytes);
        self
    }

    /// Returns the product name, e.g. `NVIDIA A100-SXM4-40GB`; a partition has the name of its
    /// card.
    pub fn product_name(&self) -> Option<&str> {
        self.attributes.get(&names::PRODUCT)?.as_text()
    }

    /// Returns the bytes of memory.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.capacity.get(&names::MEMORY).copied()
    }

    /// Returns a boolean attribute; `None` if it is not known.
    pub fn bool_attribute(&self, name: &AttributeName) -> Option<bool> {
        self.attributes.get(name)?.as_bool()
    }

    /// Returns the vendor's name of a partition's shape; `None` for a card, or if it is not known.
    pub fn partition_profile(&self) -> Option<&str> {
        match &self.kind {
            Kind::Card { .. } => None,
            Kind::Partition { profile, .. } => profile.as_deref(),
        }
    }

    /// Returns the name of the card for probes, orders and stuck calls. `None` for a device without
    /// PCI address and index.
    pub fn card_ref(&self) -> Option<CardRef> {
        let index = self.index.map(|index| CardRef::Index(index.card));
        self.pci.map(CardRef::Pci).or(index)
    }

    /// Returns the id of the card: the parent of a partition, or the device itself.
    pub fn card_id(&self) -> &DeviceId {
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
