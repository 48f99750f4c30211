//! How a backend (a vendor's probe) is doing, apart from its devices.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallFailure, CardRef, Companions, DriverFiles, known};

/// One backend's own state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Backend {
    /// Its name: `nvidia`.
    pub name: String,
    /// Where it stands.
    pub phase: Phase,
    /// Why it stands there, for a person; empty when all is well.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The driver it talks to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    /// Calls that did not return, each with the device it was made for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck: Vec<StuckCall>,
    /// Devices that exist but do not tell who they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// What there is beside the devices.
    #[serde(default, skip_serializing_if = "Extras::is_empty")]
    pub extras: Extras,
}

/// What a driver and its companions have beside the devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Extras {
    /// Device nodes, channels and daemons, by class.
    #[serde(skip_serializing_if = "Companions::is_empty")]
    pub companions: Companions,
    /// Device nodes that only the host's own `/dev` has, where another folder for them was named:
    /// what stands before the paths of the others does not stand before theirs.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub host_nodes: BTreeSet<String>,
    /// The driver's files, where the probe was told to look for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<std::sync::Arc<DriverFiles>>,
}

/// Where a backend stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Its first report has not come yet.
    Starting,
    /// There is no driver to talk to; it looks again.
    NoDriver,
    /// There is a driver and it refuses to work; it looks again.
    DriverFailed,
    /// Its reports are current.
    Running,
    /// Its process cannot be kept running; it is started again with back-off.
    Failing,
}

/// The driver behind a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Driver {
    /// The kernel driver's version, e.g. `580.95.05`.
    pub version: String,
    /// The highest CUDA version it supports, e.g. `13.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// The library through which it is spoken to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Names this loading of the kernel driver: another one after each reload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

/// A driver call that does not return.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StuckCall {
    /// The call's name as the vendor writes it.
    pub call: String,
    /// The card it was made for; absent for calls that concern the whole driver.
    #[serde(
        default,
        deserialize_with = "known::text",
        skip_serializing_if = "Option::is_none"
    )]
    pub device: Option<CardRef>,
    /// When it was made.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// The part of the probe's work that made it.
    #[serde(default, skip_serializing_if = "Work::is_survey")]
    pub work: Work,
}

/// The parts of a probe's work. All but the survey can be left out.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Looking at the devices.
    #[default]
    Survey,
    /// Finding out how devices are linked.
    Links,
    /// Waiting for events.
    Events,
    /// Checking how well the devices work.
    Checks,
}

/// A device that exists on the bus but does not tell who it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unreadable {
    /// The card, by its place.
    pub card: CardRef,
    /// The call that was tried, and what the driver said.
    pub failure: CallFailure,
}

// === impl Extras ===

impl Extras {
    /// Whether there is nothing.
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
