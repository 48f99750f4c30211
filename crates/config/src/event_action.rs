//! The meaning of an event for its device, of any vendor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::Word;

/// The meaning of an event for its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventAction {
    /// Nothing.
    Ignore,
    /// A program failed and must be started again; the device is fine. It is a warning for a while.
    Application,
    /// The device is out until it was reset.
    Reset,
    /// The device is out until its work has ended and it was reset.
    Drain,
    /// The device is out until an operator takes it back.
    Permanent,
}

// === impl EventAction ===

impl Word for EventAction {}

impl EventAction {
    /// Returns true if the device is out.
    pub fn takes_out(self) -> bool {
        matches!(self, Self::Reset | Self::Drain | Self::Permanent)
    }
}
