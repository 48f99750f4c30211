//! What a supervisor passes on: the backend's own state and every device its probes see.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use model::{Backend, CardRef, Device, DeviceId, Event, StuckCall};

use crate::protocol::{Checkup, Count, Message, Sample};

/// One step of what is known of a backend.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// The whole picture changed.
    Sighting(Box<Sighting>),
    /// Sensors and counters of one device.
    Sample {
        /// The backend that tells.
        backend: String,
        /// The sensors and counters.
        sample: Box<Sample>,
    },
    /// A check-up of one device.
    Checkup {
        /// The backend that tells.
        backend: String,
        /// The check-up.
        checkup: Box<Checkup>,
    },
    /// Something happened to a device.
    Event {
        /// The backend that tells.
        backend: String,
        /// The event.
        event: Event,
    },
    /// Counters of a card right after an event.
    Count {
        /// The backend that tells.
        backend: String,
        /// The counters.
        count: Box<Count>,
    },
    /// There is no such backend any more.
    Retired(String),
}

/// The whole picture of a backend, over all its probe processes.
#[derive(Clone, Debug, PartialEq)]
pub struct Sighting {
    /// The backend's own state.
    pub backend: Backend,
    /// Every device that some probe reads.
    pub devices: Vec<Arc<Device>>,
    /// Cards that are left out because a call on them did not return.
    pub stuck: BTreeMap<CardRef, StuckCall>,
    /// A call that concerns the whole driver and did not return.
    pub driver_stuck: Option<StuckCall>,
    /// Whether the picture is current; if not, why not.
    pub unwatched: Option<String>,
    /// What the agent gave up for a while; its devices are not among `devices`.
    pub released: Released,
}

/// What no probe looks at because the agent was told so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Everything.
    pub all: Option<Release>,
    /// Single cards.
    pub cards: BTreeMap<CardRef, Release>,
}

/// One release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// When it is taken back. A time that has passed: a process that looks again is starting.
    pub until: Timestamp,
    /// Whether the agent itself has it, to have it reset before it is handed over.
    pub own: bool,
    /// Whether every process that could have a driver handle to it has ended.
    pub closed: bool,
}

// === impl Update ===

impl Update {
    /// Wraps what the probe of a backend said of one device; `None` for a message of another kind.
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

    /// The backend that tells, and the one device that it tells of.
    pub fn subject(&self) -> Option<(&str, &DeviceId)> {
        match self {
            Self::Sample { backend, sample } => Some((backend, &sample.device)),
            Self::Checkup { backend, checkup } => Some((backend, &checkup.device)),
            Self::Event { backend, event } => Some((backend, &event.device)),
            Self::Count { backend, count } => Some((backend, &count.device)),
            Self::Sighting(_) | Self::Retired(_) => None,
        }
    }
}

// === impl Released ===

impl Released {
    /// Whether nothing is released.
    pub fn is_empty(&self) -> bool {
        self.all.is_none() && self.cards.is_empty()
    }

    /// The release that covers `device`.
    pub fn of(&self, device: &Device) -> Option<&Release> {
        let mut cards = self.cards.iter();
        let own = cards.find_map(|(card, release)| card.covers(device).then_some(release));
        self.all.as_ref().or(own)
    }
}
