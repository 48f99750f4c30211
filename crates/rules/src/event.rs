//! Meaning of an event that a driver announced.

use config::EventAction;

/// Meaning of an event for its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventMeaning {
    /// Effect on the device, and the condition that ends the effect.
    pub action: EventAction,
    /// Event for a person: the code, and the vendor's name of it.
    pub text: String,
}
