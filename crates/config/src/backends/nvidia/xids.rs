//! Section `backends.nvidia.xids`: meaning of the errors of NVIDIA's driver (XIDs).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::{
    EventAction,
    source::{FileItem, FromNode, ReadNotes, Section, SectionReader, Word, map_by},
};

/// Meaning of XIDs. `heed` wins over `ignore`, `ignore` over `actions`, `actions` over `base`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Xids {
    /// Meaning of XIDs that no other option names: that of our table, or of NVIDIA's device plugin.
    pub base: XidBase,
    /// Meaning of single XIDs: a map from their numbers.
    #[schemars(with = "BTreeMap<String, EventAction>")]
    pub actions: BTreeMap<u32, EventAction>,
    /// Meaning of an XID that the table does not have. Not used with `base: nvidia`.
    pub unknown: EventAction,
    /// XIDs that say nothing about a card's health: `all`, or numbers.
    pub ignore: XidSet,
    /// XIDs that take a card out of service in any case: `all`, or numbers.
    pub heed: XidSet,
}

/// Meaning of XIDs that no other option names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum XidBase {
    /// The meaning in our table, which follows NVIDIA's catalogue of XIDs.
    Catalogue,
    // k8s-device-plugin v0.20.0, internal/rm/health.go: 13, 31, 43, 45, 68 and 109 are ignored.
    /// The meaning for NVIDIA's device plugin: a few are ignored, all others take the device out of
    /// service.
    Nvidia,
}

/// Set of XIDs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XidSet {
    /// All XIDs.
    All,
    /// The XIDs with these numbers.
    Some(Vec<u32>),
}

// === impl Xids ===

impl Section for Xids {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("base", &mut self.base);
        at.set_by("actions", &mut self.actions, map_by(parse_xid));
        at.set_option("unknown", &mut self.unknown);
        at.set_option("ignore", &mut self.ignore);
        at.set_option("heed", &mut self.heed);
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
    /// Returns the empty set.
    fn default() -> Self {
        Self::Some(Vec::new())
    }
}

impl XidSet {
    /// Returns true if the set has the XID.
    pub fn contains_xid(&self, xid: u64) -> bool {
        match self {
            Self::All => true,
            Self::Some(xids) => xids.iter().any(|one| u64::from(*one) == xid),
        }
    }
}

impl FromNode for XidSet {
    fn from_node(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Self> {
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

fn parse_xid(name: &str) -> Result<u32, (String, String)> {
    let help = "write a map from numbers, e.g. `actions: {94: reset}`";
    let message = || format!("`{name}` is not the number of an XID");
    name.parse().map_err(|_| (message(), help.to_owned()))
}
