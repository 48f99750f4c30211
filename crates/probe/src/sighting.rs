//! Output of a supervisor: the state of a backend, and the messages about single devices.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use model::{Backend, CardRef, Device, DeviceId, Event, StuckCall};

use crate::protocol::{Checkup, Count, Message, Sample};

/// Message of a supervisor.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// New state of the whole backend; replaces the state before.
    State(Box<BackendState>),
    /// Sensors and counters of one device.
    Sample {
        /// Name of the backend.
        backend: String,
        /// Sensors and counters.
        sample: Box<Sample>,
    },
    /// Check-up of one device.
    Checkup {
        /// Name of the backend.
        backend: String,
        /// Check-up.
        checkup: Box<Checkup>,
    },
    /// Event of one device.
    Event {
        /// Name of the backend.
        backend: String,
        /// Event.
        event: Event,
    },
    /// Counters of a card, read after an event.
    Count {
        /// Name of the backend.
        backend: String,
        /// Counters since the last reset.
        count: Box<Count>,
    },
    /// The config no longer has the backend with this name.
    Retired(String),
}

/// State of a backend: what all of its probe processes report, merged.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendState {
    /// State of the backend itself: phase, message, driver and stuck calls.
    pub backend: Backend,
    /// Devices of all probe processes, each once. Stuck and released ones are left out.
    pub devices: Vec<Arc<Device>>,
    /// Cards that are left out because a call on them did not return, each with this call.
    pub stuck: BTreeMap<CardRef, StuckCall>,
    /// Call that concerns the whole driver and did not return.
    pub driver_stuck: Option<StuckCall>,
    /// Reason why the state is not current; `None` if the main process is running and reports.
    pub unwatched: Option<String>,
    /// Cards that are released for a while. Their devices are not in `devices`.
    pub released: Releases,
}

/// Releases: cards that no probe opens, by order of an operator or of the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Releases {
    /// Release of every card.
    pub all: Option<ReleaseStatus>,
    /// Releases of single cards.
    pub cards: BTreeMap<CardRef, ReleaseStatus>,
}

/// State of one release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseStatus {
    /// Time at which the release ends. If this is in the past, a process that reads the card again
    /// is starting.
    pub until: Timestamp,
    /// True if the agent itself ordered the release, to reset the card before a container gets it.
    pub own: bool,
    /// True if every process that could have a driver handle of the card has ended.
    pub closed: bool,
}

// === impl Update ===

impl Update {
    /// Wraps a probe's message about one device; `None` for other messages.
    pub fn of_device(backend: &str, message: Message) -> Option<Self> {
        let backend = backend.to_owned();
        match message {
            Message::Sample(sample) => Some(Self::Sample {
                backend,
                sample: Box::new(sample),
            }),
            Message::Checkup(checkup) => Some(Self::Checkup {
                backend,
                checkup: Box::new(checkup),
            }),
            Message::Event(event) => Some(Self::Event { backend, event }),
            Message::Count(count) => Some(Self::Count {
                backend,
                count: Box::new(count),
            }),
            Message::Hello(_) | Message::Report(_) | Message::Beat(_) => None,
        }
    }

    /// Returns the backend and the device of a message about one device; `None` for other messages.
    pub fn subject_device(&self) -> Option<(&str, &DeviceId)> {
        match self {
            Self::Sample { backend, sample } => Some((backend, &sample.device)),
            Self::Checkup { backend, checkup } => Some((backend, &checkup.device)),
            Self::Event { backend, event } => Some((backend, &event.device)),
            Self::Count { backend, count } => Some((backend, &count.device)),
            Self::State(_) | Self::Retired(_) => None,
        }
    }
}

// === impl Releases ===

impl Releases {
    /// Returns true if nothing is released.
    pub fn is_empty(&self) -> bool {
        self.all.is_none() && self.cards.is_empty()
    }

    /// Finds the release that covers `device`. A release of every card takes precedence.
    pub fn find_release(&self, device: &Device) -> Option<&ReleaseStatus> {
        let mut cards = self.cards.iter();
        let own = cards.find_map(|(card, release)| card.covers(device).then_some(release));
        self.all.as_ref().or(own)
    }
}
