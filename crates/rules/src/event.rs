//! The meaning of an event that a driver announced.

use config::EventAction;

/// The meaning of an event for its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The effect on the device, and what ends it.
    pub action: EventAction,
    /// The event, for a person: its code and what the vendor calls it.
    pub text: String,
}
