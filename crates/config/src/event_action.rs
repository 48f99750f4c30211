//! Meaning of a driver's event for its device, the same for every vendor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::Word;

/// Meaning of a driver's event for its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventAction {
    /// The event is ignored.
    Ignore,
    /// A program failed and must be restarted; the device is fine. The event is a warning for
    /// `health.eventWarning`.
    Application,
    /// The device is out of service until it was reset.
    Reset,
    /// The device is out of service until its work has ended and it was reset.
    Drain,
    /// The device is out of service until an operator puts it back.
    Permanent,
}

// === impl EventAction ===

impl Word for EventAction {}

impl EventAction {
    /// Returns true if the event takes the device out of service.
    pub fn takes_out(self) -> bool {
        matches!(self, Self::Reset | Self::Drain | Self::Permanent)
    }
}
