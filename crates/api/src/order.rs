//! Orders of an operator, and the answer to an order.

use jiff::Timestamp;
use model::DeviceId;
use serde::{Deserialize, Serialize};

/// Body of the action [`CORDON`](crate::CORDON).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CordonOrder {
    /// UUID or its beginning, index, or PCI address.
    pub device: String,
    /// Reason for the cordon, shown with the verdict. At most 1000 bytes.
    #[serde(default)]
    pub reason: String,
}

/// Body of the action [`UNCORDON`](crate::UNCORDON).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UncordonOrder {
    /// UUID or its beginning, index, or PCI address.
    pub device: String,
}

/// Body of the actions [`RELEASE`](crate::RELEASE) and [`RESUME`](crate::RESUME). Either `device`
/// or `all` has to be set, not both.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseOrder {
    /// UUID or its beginning, index, or PCI address of one device; its whole card is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// True for every card.
    #[serde(default)]
    pub all: bool,
    /// Length of the release in seconds, 1 to 86400; 600 if absent. Ignored by
    /// [`RESUME`](crate::RESUME).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

/// Answer to an order that was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderDone {
    /// Ids of all devices that the order concerns, partitions included.
    pub devices: Vec<DeviceId>,
    /// Description of the result, for people.
    pub message: String,
    /// Reason that the order will not survive a restart of the agent; absent if it will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
    /// Time at which a release ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

// === impl OrderDone ===

impl OrderDone {
    /// Builds the answer for these devices.
    pub fn new(devices: Vec<DeviceId>, message: String) -> Self {
        Self {
            devices,
            message,
            not_kept: None,
            until: None,
        }
    }

    /// Adds the reason that the order will not survive a restart of the agent, also to the message.
    pub fn kept(mut self, not_kept: Option<String>) -> Self {
        if let Some(why) = &not_kept {
            let more = format!("; a restart of the agent forgets it: {why}");
            self.message.push_str(&more);
        }
        self.not_kept = not_kept;
        self
    }
}
