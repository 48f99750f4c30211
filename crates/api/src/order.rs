//! Orders of an operator, and the answer to them.

use jiff::Timestamp;
use model::DeviceId;
use serde::{Deserialize, Serialize};

/// The body of [`CORDON`](crate::CORDON).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cordon {
    /// A UUID or its beginning, an index, or a PCI address.
    pub device: String,
    /// The operator's reason, for the next reader.
    #[serde(default)]
    pub reason: String,
}

/// The body of [`UNCORDON`](crate::UNCORDON).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uncordon {
    /// The device, named as for a cordon.
    pub device: String,
}

/// The body of [`RELEASE`](crate::RELEASE) and [`RESUME`](crate::RESUME): one device or all.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The device, named as for a cordon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Every card, instead of one device.
    #[serde(default)]
    pub all: bool,
    /// For how long; ten minutes if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Every device that it concerns.
    pub devices: Vec<DeviceId>,
    /// What was done, for a person.
    pub message: String,
    /// Why it does not outlive the agent, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

// === impl Done ===

impl Done {
    /// What was done, to these devices.
    pub fn new(devices: Vec<DeviceId>, message: String) -> Self {
        Self {
            devices,
            message,
            not_kept: None,
            until: None,
        }
    }

    /// Says so if it does not outlive the agent.
    pub fn kept(mut self, not_kept: Option<String>) -> Self {
        if let Some(why) = &not_kept {
            let more = format!("; a restart of the agent forgets it: {why}");
            self.message.push_str(&more);
        }
        self.not_kept = not_kept;
        self
    }
}
