//! States of backends for the tests of all crates.

use std::collections::BTreeMap;

use model::{Device, sample};

use crate::{BackendState, Releases};

/// Builds the state of a backend with these devices, without releases and stuck calls.
pub fn backend_state(devices: impl IntoIterator<Item = Device>) -> BackendState {
    BackendState {
        backend: sample::running_backend(),
        devices: devices.into_iter().map(Into::into).collect(),
        stuck: BTreeMap::new(),
        driver_stuck: None,
        unwatched: None,
        released: Releases::default(),
    }
}
