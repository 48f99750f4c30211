//! Health verdict of a device: a state, and its causes with evidence, start and end condition.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Health verdict of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// State: the worst of the causes.
    pub state: State,
    /// Causes of the state; empty if the device is healthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Findings that an operator should look at, and that do not change the state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Cause>,
}

/// Health state of a device: if it may be handed out.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum State {
    /// No cause is known.
    #[default]
    Healthy,
    /// The state cannot be determined: a monitor failed, or there is no recent report.
    Unknown,
    /// The device must not be handed out.
    Unhealthy,
    /// An operator has taken the device out of service: it is cordoned, or released for a reset.
    Maintenance,
}

/// One cause of a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// Kind of the cause, for programs.
    pub kind: CauseKind,
    /// Evidence, for a person: `XID 79 (GPU has fallen off the bus)`.
    pub evidence: String,
    /// Time at which the cause began.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// Condition that ends the cause, for a person.
    pub ends_when: String,
}

/// Kinds of causes, for programs. The aliases are names in the state files of earlier agents.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum CauseKind {
    /// The driver reports that the device is lost or needs a reset.
    Lost,
    /// The driver no longer lists the device.
    Gone,
    /// The driver announced a critical event.
    Event,
    /// A driver call on the device does not return.
    NotAnswering,
    /// The probe does not run, so that nothing is known of the device.
    MonitorDown,
    /// The hardware could not correct memory errors.
    Ecc,
    /// Memory repairs wait for a reset, or failed.
    #[serde(alias = "RowRemap", alias = "PageRetirement")]
    MemoryRepair,
    /// The driver asks for an action, e.g. a reset.
    RecoveryAction,
    /// The hardware lowers its clocks.
    Throttled,
    /// The PCIe link has fewer lanes or a lower generation than possible.
    Pcie,
    /// Direct links to other cards count errors, or are down.
    #[serde(alias = "NvLink")]
    Link,
    /// The temperature is close to its limit.
    Temperature,
    /// A condition that the vendor names is not ok.
    #[serde(alias = "Fabric")]
    Condition,
    /// A counter grows faster than it should.
    Trend,
    /// The user's command for deep checks failed.
    Deep,
    /// A foreign process, or its memory, is on a device that was about to be handed out.
    Residue,
    /// An operator cordoned the device.
    Cordoned,
    /// An operator released the device for a reset or a change of the driver. Nothing monitors it.
    Released,
}

// === impl Verdict ===

impl Verdict {
    /// Joins the evidence of all causes in one line; empty without causes.
    pub fn join_evidence(&self) -> String {
        let evidence: Vec<&str> = self.causes.iter().map(|c| c.evidence.as_str()).collect();
        evidence.join("; ")
    }
}

// === impl State ===

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Healthy => "Healthy",
            Self::Unknown => "Unknown",
            Self::Unhealthy => "Unhealthy",
            Self::Maintenance => "Maintenance",
        })
    }
}
