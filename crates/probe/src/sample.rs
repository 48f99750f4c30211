//! States of backends for the tests of all crates.

use std::collections::BTreeMap;

use model::{Device, sample};

use crate::{Released, Sighting};

/// Builds the state of a backend with these devices, without releases and stuck calls.
pub fn sighting(devices: impl IntoIterator<Item = Device>) -> Sighting {
    Sighting {
        backend: sample::backend(),
        devices: devices.into_iter().map(Into::into).collect(),
        stuck: BTreeMap::new(),
        driver_stuck: None,
        unwatched: None,
        released: Released::default(),
    }
}
