//! Health records as they are saved over a restart of the agent: plain data for the state file.
//! Values that this version does not know, because another one wrote them, are left out without an
//! error.

mod prune;

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{DeviceId, EventCode, KnownOr, SinceReset, Transition, known_items};
use serde::{Deserialize, Deserializer, Serialize};

pub use self::prune::prune_devices;

/// Records of all devices and the history of verdicts, as saved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedHealth {
    /// Time of writing.
    pub written: Option<Timestamp>,
    /// The kernel's id of the boot in which the file was written
    /// (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
    /// Identity of each backend's driver load, by the name of the backend.
    pub drivers: BTreeMap<String, String>,
    /// Records by device.
    #[serde(deserialize_with = "known_values")]
    pub devices: BTreeMap<DeviceId, SavedDevice>,
    /// The last changes of verdicts, the oldest first.
    #[serde(deserialize_with = "known_items")]
    pub history: Vec<Transition>,
}

/// Saved record of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedDevice {
    /// Backend of the device. The record is not used for a device of another backend with the same
    /// id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub backend: String,
    /// Time at which an agent last knew the device to be present, or noticed its absence.
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
    pub(crate) standing: Vec<SavedFinding>,
    #[serde(
        deserialize_with = "known_items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(crate) begun: Vec<SavedRecurrence>,
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

/// Continuity between the writing of a file and now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuity {
    /// True if the node was not rebooted.
    pub same_boot: bool,
    /// True if the driver was not reloaded. If that is not known yet, set `true` and report a
    /// reload to the record later.
    pub same_driver: bool,
}

/// A saved event. Older agents wrote `xid` with its number instead of `code`, or neither for a
/// memory error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedEvent {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<EventCode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) xid: Option<u64>,
    pub(crate) since: Timestamp,
    /// Age of the last report at the time of writing, in seconds.
    #[serde(default)]
    pub(crate) ago: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) asked: bool,
    /// True if the device's counters were not read after the last report.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) uncounted: bool,
}

/// A saved finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedFinding {
    pub(crate) check: String,
    pub(crate) evidence: String,
    pub(crate) since: Timestamp,
    /// Age at the time of writing, in milliseconds: a grace may be shorter than a second.
    #[serde(default)]
    pub(crate) lasted_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unread: Option<Timestamp>,
    /// Time since which the check passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) well: Option<Timestamp>,
    /// True for a condition that is a warning at most.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) mild: bool,
    /// True for a condition that a reload of the driver or a reboot of the node ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ends_with_reset: bool,
    /// Time that a condition may last before it counts, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) grace_ms: u64,
}

/// A saved count of recurrences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedRecurrence {
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
    /// Time from the last detection to the time of writing, in seconds.
    #[serde(default)]
    pub(crate) ago: u64,
}

// === impl SavedHealth ===

impl SavedHealth {
    /// Returns the continuity for a backend's devices. A driver load that is unknown, then or now,
    /// counts as the same.
    pub fn continuity(&self, boot_id: &str, backend: &str, instance: Option<&str>) -> Continuity {
        let then = self.drivers.get(backend).map(String::as_str);
        let known = then.zip(instance);
        Continuity {
            same_boot: self.boot_id == boot_id,
            same_driver: known.is_none_or(|(then, now)| then == now),
        }
    }
}

// === impl SavedDevice ===

impl SavedDevice {
    /// True if the record has nothing worth saving. `since_reset` alone is no reason to save it:
    /// these counters are useful only together with an event that a reset ends.
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

// === impl SavedFinding ===

impl SavedFinding {
    /// Adds a condition's properties to a finding of the checks `fabric` and `fabric-joining`,
    /// which older agents saved and which are conditions now. Other findings stay as they are.
    pub(crate) fn upgrade_condition(self) -> Self {
        let (mild, grace_ms) = match self.check.as_str() {
            // Values that NVIDIA's probe reports for the two conditions today: 600 s is the default
            // of `backends.nvidia.fabricJoin`.
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

// === impl SavedRecurrence ===

impl SavedRecurrence {
    /// Value of `what` for a foreign process on the device. For any other fault `what` is the name
    /// of its check.
    pub(crate) const RESIDUE: &str = "residue";
}

fn is_zero(millis: &u64) -> bool {
    *millis == 0
}

/// Deserializes a map and leaves out devices whose record this version cannot read.
fn known_values<'de, D>(deserializer: D) -> Result<BTreeMap<DeviceId, SavedDevice>, D::Error>
where
    D: Deserializer<'de>,
{
    let values = BTreeMap::<DeviceId, KnownOr<SavedDevice>>::deserialize(deserializer)?;
    let known = |(id, value): (DeviceId, KnownOr<SavedDevice>)| Some((id, value.into_known()?));
    Ok(values.into_iter().filter_map(known).collect())
}

#[cfg(test)]
mod tests;
