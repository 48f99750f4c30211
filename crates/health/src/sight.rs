//! What a record takes in: how a device looks, what happened to it, and when.

use std::time::Duration;

use jiff::Timestamp;
use model::{CallFailure, StuckCall};

/// This moment: for people, and on a clock that never jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The wall clock.
    pub wall: Timestamp,
    /// Since the agent started.
    pub uptime: Duration,
}

/// How a device looks at this moment.
#[derive(Clone, Copy, Debug)]
pub enum Sight<'a> {
    /// Its probe reads it; these calls failed.
    Seen(&'a [CallFailure]),
    /// It is on the bus, and the driver does not let it be read.
    Unreadable(&'a CallFailure),
    /// A call on it, or one that concerns the whole driver, does not return.
    Stuck(&'a StuckCall),
    /// The driver as a whole does not work, and says so.
    Failed(&'a str),
    /// There is no driver any more, which says nothing of the device itself.
    NoDriver(&'a str),
    /// The driver works, and does not list it any more.
    Missing(&'a str),
    /// A partition that its card did not tell of, because this call failed.
    Untold(&'a CallFailure),
    /// Nobody looks: the probe does not run.
    Unwatched(&'a str),
}

// === impl Sight ===

impl Sight<'_> {
    /// Whether somebody looked and could tell how the device is.
    pub fn tells(&self) -> bool {
        match self {
            Self::Seen(_) | Self::Unreadable(_) | Self::NoDriver(_) | Self::Missing(_) => true,
            Self::Stuck(_) | Self::Failed(_) | Self::Untold(_) | Self::Unwatched(_) => false,
        }
    }
}
