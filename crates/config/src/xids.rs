//! What NVIDIA's driver errors (XIDs) mean, where the config says so.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::source::Word;

/// What XIDs mean. `heed` beats `ignore`, which beats `actions`, which beat `base`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Xids {
    /// What they mean where nothing else is said.
    #[serde(rename = "xidBase")]
    pub base: XidBase,
    /// What single ones mean.
    #[serde(rename = "xids")]
    pub actions: BTreeMap<u32, XidAction>,
    /// What one means that the table does not have; not with [`XidBase::Nvidia`].
    #[serde(rename = "unknownXids")]
    pub unknown: XidAction,
    /// These say nothing about a device's health.
    #[serde(rename = "ignoreXids")]
    pub ignore: XidSet,
    /// These take a device out, even if they are among the others.
    #[serde(rename = "heedXids")]
    pub heed: XidSet,
}

/// What XIDs mean where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum XidBase {
    /// What our table says, which follows NVIDIA's catalogue.
    Catalogue,
    /// What they mean to NVIDIA's device plugin: a few nothing, all others take the device out.
    Nvidia,
}

/// What an XID means for its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum XidAction {
    /// Nothing.
    Ignore,
    /// A program failed; the device is fine.
    Application,
    /// The device is out until it was reset.
    Reset,
    /// The device is out until its work has ended and it was reset.
    Drain,
    /// The device is out until an operator takes it back.
    Permanent,
}

/// Some XIDs, or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XidSet {
    /// All.
    All,
    /// These.
    Some(Vec<u32>),
}

// === impl Xids ===

impl Default for Xids {
    fn default() -> Self {
        Self {
            base: XidBase::Catalogue,
            actions: BTreeMap::new(),
            unknown: XidAction::Reset,
            ignore: XidSet::default(),
            heed: XidSet::default(),
        }
    }
}

// === impl XidBase ===

impl Word for XidBase {}

// === impl XidAction ===

impl Word for XidAction {}

// === impl XidSet ===

impl Default for XidSet {
    /// None of them.
    fn default() -> Self {
        Self::Some(Vec::new())
    }
}

impl Serialize for XidSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::Some(xids) => xids.serialize(serializer),
        }
    }
}

impl JsonSchema for XidSet {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "XidSet".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let number = serde_json::json!({"type": "integer", "minimum": 0});
        schemars::json_schema!({
            "anyOf": [
                {"const": "all"},
                number,
                {"type": "array", "items": number},
            ]
        })
    }
}
