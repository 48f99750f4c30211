//! Inputs of a record: the observed state of a device, and the time of the observation.

use std::time::Duration;

use jiff::Timestamp;
use model::{CallFailure, StuckCall};

/// The present time on two clocks: the wall clock for people and files, and a monotonic clock for
/// durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Wall clock. It may jump: NTP and operators set it.
    pub wall: Timestamp,
    /// Time since the agent started, on a monotonic clock.
    pub uptime: Duration,
}

/// Observed state of a device at one moment.
#[derive(Clone, Copy, Debug)]
pub enum Observation<'a> {
    /// The probe reads the device. Contains the calls that failed on it.
    Seen(&'a [CallFailure]),
    /// The device is on the PCI bus, but the driver cannot read it. Contains the call that failed.
    Unreadable(&'a CallFailure),
    /// A driver call on the device, or one that concerns the whole driver, does not return.
    Stuck(&'a StuckCall),
    /// The driver reports that it does not work at all. Contains its message.
    DriverFailed(&'a str),
    /// There is no driver any more. That says nothing about the device itself.
    NoDriver(&'a str),
    /// The driver works, but does not list the device any more.
    Missing(&'a str),
    /// A partition that its card did not report, because this call failed.
    Unreported(&'a CallFailure),
    /// The probe does not run, so nothing is known. Contains the reason.
    Unmonitored(&'a str),
}

// === impl Observation ===

impl Observation<'_> {
    /// True if a probe looked at the device and could tell its state.
    pub fn tells(&self) -> bool {
        match self {
            Self::Seen(_) | Self::Unreadable(_) | Self::NoDriver(_) | Self::Missing(_) => true,
            Self::Stuck(_) | Self::DriverFailed(_) | Self::Unreported(_) | Self::Unmonitored(_) => {
                false
            }
        }
    }
}
