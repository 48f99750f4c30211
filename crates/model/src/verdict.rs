//! The health verdict of a device: a state, and each cause with its evidence, its start and what
//! ends it.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What we hold of a device, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The worst of the causes.
    pub state: State,
    /// Everything that speaks against the device now; empty when it is healthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// What a person should look at and what does not take the device out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Cause>,
}

/// Whether a device may be handed out.
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
    /// Nothing speaks against it.
    #[default]
    Healthy,
    /// It cannot be judged at the moment: a monitor failed, or nothing was heard of it lately.
    Unknown,
    /// It must not be handed out.
    Unhealthy,
    /// An operator has it in hand: it is cordoned, or released for a reset.
    Maintenance,
}

/// One reason for a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// What kind of trouble it is.
    pub kind: CauseKind,
    /// The evidence, for a person: `XID 79 (GPU has fallen off the bus)`.
    pub evidence: String,
    /// When it began.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// What ends it, for a person.
    pub ends_when: String,
}

/// The kinds of trouble, for programs. The aliases are names that agents before this one wrote into their
/// state files.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum CauseKind {
    /// The driver says that the device is lost or needs a reset.
    Lost,
    /// The device was there and is not listed any more.
    Gone,
    /// A critical driver event.
    Event,
    /// A driver call on this device does not return.
    NotAnswering,
    /// Nothing can be said because the probe does not run.
    MonitorDown,
    /// Memory errors that the hardware could not repair.
    Ecc,
    /// Memory repairs wait for a reset, or failed.
    #[serde(alias = "RowRemap", alias = "PageRetirement")]
    MemoryRepair,
    /// The driver asks for an action, e.g. a reset.
    RecoveryAction,
    /// The hardware slows itself down.
    Throttled,
    /// The PCIe link is narrower or slower than it could be.
    Pcie,
    /// Direct links to other cards count errors, or are down.
    #[serde(alias = "NvLink")]
    Link,
    /// The temperature is close to its limit.
    Temperature,
    /// A condition of the device, which its vendor names, is not ok.
    #[serde(alias = "Fabric")]
    Condition,
    /// A counter grows faster than it should.
    Trend,
    /// The command that the user named for deep checks failed.
    Deep,
    /// A foreign process or its memory is on a device that was about to be handed over.
    Residue,
    /// An operator took it out.
    Cordoned,
    /// An operator has it, for a reset or a change of the driver; nobody looks at it.
    Released,
}

// === impl Verdict ===

impl Verdict {
    /// The causes in one line, empty when there are none.
    pub fn reason(&self) -> String {
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
