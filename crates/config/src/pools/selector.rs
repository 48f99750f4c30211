//! Which devices a rule is about.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Size, source::Word};

/// Which devices. What is said must hold all together; what is not said holds for all. Texts are
/// patterns: `*` stands for any text, the rest for itself, and all of the value must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Selector {
    /// The vendor, e.g. `nvidia`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::file::OneOrMany<String>")]
    pub vendor: Vec<String>,
    /// The product name, e.g. `NVIDIA A100-*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::file::OneOrMany<String>")]
    pub model: Vec<String>,
    /// The device's id, or its card's: `GPU-…`, `MIG-…`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::file::OneOrMany<String>")]
    pub uuid: Vec<String>,
    /// The driver's index, `3` (the card and its partitions) or `3:0` (one partition).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::file::OneOrMany<crate::file::Index>")]
    pub index: Vec<String>,
    /// The PCI address, e.g. `0000:3b:00.0`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::file::OneOrMany<String>")]
    pub pci: Vec<String>,
    /// Memory, in bytes: at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_memory: Option<Size>,
    /// Memory, in bytes: at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory: Option<Size>,
    /// The MIG profile, e.g. `1g.5gb`, `3g.*`; whole cards have none and never match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::file::OneOrMany<String>")]
    pub mig_profile: Vec<String>,
    /// Whole cards (`card`) or partitions (`partition`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<KindName>,
    /// Whether a display is attached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display: Option<bool>,
}

/// Whole card or partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KindName {
    /// A whole card.
    Card,
    /// A MIG device.
    Partition,
}

// === impl KindName ===

impl Word for KindName {}
