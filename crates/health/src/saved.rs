//! What is kept of a record over a restart of the agent: plain data for a file. What another
//! version wrote, and this one does not know, is left out and not an error.

mod prune;

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{DeviceId, EventCode, KnownOr, SinceReset, Transition, known_items};
use serde::{Deserialize, Deserializer, Serialize};

pub use self::prune::prune;

/// Verdicts and their history, as they are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedFile {
    /// When it was written.
    pub written: Option<Timestamp>,
    /// The kernel's id of the boot in which it was written.
    pub boot_id: String,
    /// The loading of each backend's driver, by the backend's name.
    pub drivers: BTreeMap<String, String>,
    /// What is kept of each device.
    #[serde(deserialize_with = "known_values")]
    pub devices: BTreeMap<DeviceId, Saved>,
    /// The last changes, the oldest first.
    #[serde(deserialize_with = "known_items")]
    pub history: Vec<Transition>,
}

/// What is kept of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Saved {
    /// The backend whose device it is: this counts for no other backend's device.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub backend: String,
    /// When an agent last knew the device to be there, or missed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<Timestamp>,
    #[serde(
        deserialize_with = "known_items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(crate) events: Vec<SavedEvent>,
    #[serde(
        deserialize_with = "known_items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(crate) standing: Vec<SavedStanding>,
    #[serde(
        deserialize_with = "known_items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(crate) begun: Vec<SavedBegun>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) away: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) asked: bool,
    #[serde(alias = "nvlink_errors", skip_serializing_if = "Option::is_none")]
    pub(crate) link_errors: Option<u64>,
    #[serde(skip_serializing_if = "SinceReset::is_empty")]
    pub(crate) since_reset: SinceReset,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cordon: Option<SavedCordon>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) release: Option<SavedRelease>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) residue: Option<SavedResidue>,
}

/// What is the same as when a file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuity {
    /// The node was not started anew.
    pub same_boot: bool,
    /// The driver was not loaded anew. Where it is not known yet, say so with `true`, and tell the
    /// record with `reloaded` later.
    pub same_driver: bool,
}

/// An event. Agents before this one wrote `xid` with its number instead of a code, or neither for a
/// memory error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedEvent {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<EventCode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) xid: Option<u64>,
    pub(crate) since: Timestamp,
    /// How long ago it was last told, in seconds.
    #[serde(default)]
    pub(crate) ago: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) asked: bool,
    /// The device's counters were not read since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) uncounted: bool,
}

/// Trouble that a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedStanding {
    pub(crate) check: String,
    pub(crate) evidence: String,
    pub(crate) since: Timestamp,
    /// How long it had lasted, in milliseconds: a grace may be shorter than a second.
    #[serde(default)]
    pub(crate) lasted_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unread: Option<Timestamp>,
    /// Since when its check passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) well: Option<Timestamp>,
    /// A condition that is a warning at most.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) mild: bool,
    /// A condition that ends when the driver is loaded anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ends_with_reset: bool,
    /// The time, in milliseconds, for which a condition may last before it counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) grace_ms: u64,
}

/// How often trouble began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedBegun {
    pub(crate) what: String,
    pub(crate) times: u32,
    pub(crate) last: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedCordon {
    #[serde(default)]
    pub(crate) reason: String,
    pub(crate) since: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedRelease {
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedResidue {
    pub(crate) evidence: String,
    pub(crate) since: Timestamp,
    /// How long ago it was found, in seconds.
    #[serde(default)]
    pub(crate) ago: u64,
}

// === impl SavedFile ===

impl SavedFile {
    /// What is the same now for a backend's devices. A driver whose loading is not known, then or
    /// now, counts as the same.
    pub fn continuity(&self, boot_id: &str, backend: &str, instance: Option<&str>) -> Continuity {
        let then = self.drivers.get(backend).map(String::as_str);
        let known = then.zip(instance);
        Continuity {
            same_boot: self.boot_id == boot_id,
            same_driver: known.is_none_or(|(then, now)| then == now),
        }
    }
}

// === impl Saved ===

impl Saved {
    /// Whether nothing is held of the device. What was counted of it is worth keeping only beside
    /// something that a reset ends.
    pub fn is_blank(&self) -> bool {
        let blank = Self {
            backend: self.backend.clone(),
            seen: self.seen,
            since_reset: self.since_reset,
            ..Self::default()
        };
        *self == blank
    }
}

// === impl SavedStanding ===

impl SavedStanding {
    /// Adds the marks of a condition to what agents before this one kept as a check of its own.
    pub(crate) fn marked(self) -> Self {
        let (mild, grace_ms) = match self.check.as_str() {
            "fabric" => (false, 0),
            "fabric-joining" => (true, 600_000),
            _ => return self,
        };
        Self {
            mild,
            ends_with_reset: true,
            grace_ms,
            ..self
        }
    }
}

// === impl SavedBegun ===

impl SavedBegun {
    /// What a foreign process on the device is called; every other trouble has its check's name.
    pub(crate) const RESIDUE: &str = "residue";
}

fn is_zero(millis: &u64) -> bool {
    *millis == 0
}

fn known_values<'de, D>(deserializer: D) -> Result<BTreeMap<DeviceId, Saved>, D::Error>
where
    D: Deserializer<'de>,
{
    let values = BTreeMap::<DeviceId, KnownOr<Saved>>::deserialize(deserializer)?;
    let known = |(id, value): (DeviceId, KnownOr<Saved>)| Some((id, value.known()?));
    Ok(values.into_iter().filter_map(known).collect())
}

#[cfg(test)]
mod tests;
