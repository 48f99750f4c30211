//! Pictures for tests, the same in every crate.

use std::collections::BTreeMap;

use model::{Device, sample};

use crate::{Released, Sighting};

/// A picture of these devices with nothing else to tell.
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
