//! State of a backend (a vendor's probe), apart from its devices.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallFailure, CardRef, Companions, DriverFiles, known};

/// State of one backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Backend {
    /// Name of the backend, e.g. `nvidia`.
    pub name: String,
    /// Phase of the backend.
    pub phase: Phase,
    /// Reason for the phase, for a person; empty when all is well.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Driver that the backend asks; absent until it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    /// Calls that did not return, each with its device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck: Vec<StuckCall>,
    /// Devices that exist on the bus but do not answer with their id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Findings beside the devices.
    #[serde(default, skip_serializing_if = "Extras::is_empty")]
    pub extras: Extras,
}

/// Findings of a probe beside the devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Extras {
    /// Device nodes, channels and daemons, by class.
    #[serde(skip_serializing_if = "Companions::is_empty")]
    pub companions: Companions,
    /// Device nodes that exist in the host's own `/dev` only, although the config names another
    /// folder for device nodes. The prefix of that folder does not apply to them.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub host_nodes: BTreeSet<String>,
    /// Files of the driver, if the probe was told to look for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<std::sync::Arc<DriverFiles>>,
}

/// Phase of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// The first report has not arrived yet.
    Starting,
    /// No driver is loaded. The probe tries again.
    NoDriver,
    /// A driver is loaded but refuses to work. The probe tries again.
    DriverFailed,
    /// Reports are current.
    Running,
    /// The probe's process ends again and again. The agent starts it again with back-off.
    Failing,
}

/// Driver of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Driver {
    /// Version of the kernel driver, e.g. `580.95.05`.
    pub version: String,
    /// Highest CUDA version that the driver supports, e.g. `13.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// Path of the library through which the probe asks the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Identifies one load of the kernel driver: it changes with each reload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

/// Driver call that does not return.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StuckCall {
    /// Name of the call, as the vendor writes it.
    pub call: String,
    /// Card of the call; absent for a call that concerns the whole driver.
    #[serde(
        default,
        deserialize_with = "known::text",
        skip_serializing_if = "Option::is_none"
    )]
    pub device: Option<CardRef>,
    /// Start of the call.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// Part of the probe's work that made the call.
    #[serde(default, skip_serializing_if = "Work::is_survey")]
    pub work: Work,
}

/// Parts of a probe's work. A probe can do without all but the survey.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Reads the devices.
    #[default]
    Survey,
    /// Reads the links between devices.
    Links,
    /// Waits for events of the driver.
    Events,
    /// Reads the checks of the tiers.
    Checks,
}

/// Device that exists on the bus but does not answer with its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unreadable {
    /// Card, by PCI address or index.
    pub card: CardRef,
    /// Call that was tried, with the driver's error.
    pub failure: CallFailure,
}

// === impl Extras ===

impl Extras {
    /// Returns true if there are no findings.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

// === impl Work ===

impl Work {
    fn is_survey(&self) -> bool {
        *self == Self::Survey
    }
}
