//! The section `backends.nvidia.xids`: the meaning of NVIDIA's driver errors (XIDs).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::{
    EventAction,
    source::{At, FromNode, Item, Notes, Section, Word, map_by},
};

/// The meaning of XIDs. `heed` beats `ignore`, which beats `actions`, which beat `base`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Xids {
    /// The meaning of XIDs that no other option names: that of our table, or of NVIDIA's device
    /// plugin.
    pub base: XidBase,
    /// The meaning of single XIDs: a map from numbers.
    #[schemars(with = "BTreeMap<String, EventAction>")]
    pub actions: BTreeMap<u32, EventAction>,
    /// The meaning of an XID that the table does not have; not with `base: nvidia`.
    pub unknown: EventAction,
    /// XIDs that say nothing about a card's health: `all`, or numbers.
    pub ignore: XidSet,
    /// XIDs that count although they usually do not: `all`, or numbers. They win.
    pub heed: XidSet,
}

/// The meaning of XIDs that no other option names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum XidBase {
    /// The meaning in our table, which follows NVIDIA's catalogue.
    Catalogue,
    /// The meaning to NVIDIA's device plugin: a few nothing, all others take the device out.
    Nvidia,
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

impl Section for Xids {
    fn read(&mut self, at: &mut At<'_>) {
        at.set("base", &mut self.base);
        at.set_by("actions", &mut self.actions, map_by(xid));
        at.set("unknown", &mut self.unknown);
        at.set("ignore", &mut self.ignore);
        at.set("heed", &mut self.heed);
    }
}

impl Default for Xids {
    fn default() -> Self {
        Self {
            base: XidBase::Catalogue,
            actions: BTreeMap::new(),
            unknown: EventAction::Reset,
            ignore: XidSet::default(),
            heed: XidSet::default(),
        }
    }
}

// === impl XidBase ===

impl Word for XidBase {}

// === impl XidSet ===

impl Default for XidSet {
    /// None of them.
    fn default() -> Self {
        Self::Some(Vec::new())
    }
}

impl XidSet {
    /// Returns true if it has this XID.
    pub fn has(&self, xid: u64) -> bool {
        match self {
            Self::All => true,
            Self::Some(xids) => xids.iter().any(|one| u64::from(*one) == xid),
        }
    }
}

impl FromNode for XidSet {
    fn from_node(item: &Item<'_>, notes: &mut Notes) -> Option<Self> {
        match item.scalar() {
            Some(("all", true)) => Some(Self::All),
            _ => Vec::from_node(item, notes).map(Self::Some),
        }
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

fn xid(name: &str) -> Result<u32, (String, String)> {
    let help = "write a map from numbers, e.g. `actions: {94: reset}`";
    let message = || format!("`{name}` is not the number of an XID");
    name.parse().map_err(|_| (message(), help.to_owned()))
}
