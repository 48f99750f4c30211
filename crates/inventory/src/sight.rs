//! Derives the state of a device from a merged report of its backend.

use health::Observation;
use model::{Backend, CallFailure, Device, DeviceId, Kind, Phase};
use probe::BackendState;

/// Derives the state of a device from a merged report of its backend. `None` if the probe has not
/// looked yet.
pub(super) fn sight<'a>(device: &Device, sighting: &'a BackendState) -> Option<Observation<'a>> {
    let stuck = sighting.stuck.iter().find(|(card, _)| card.covers(device));
    if let Some(call) = stuck
        .map(|(_, call)| call)
        .or(sighting.driver_stuck.as_ref())
    {
        return Some(Observation::Stuck(call));
    }
    if let Some(why) = &sighting.unwatched {
        return Some(Observation::Unmonitored(why));
    }
    if sighting.backend.phase == Phase::Starting {
        return None;
    }
    // A partition is only as healthy as its card, and nothing is known of it if nothing is known of
    // its card.
    let find = |id: &DeviceId| sighting.devices.iter().find(|seen| seen.id == *id);
    let failed = find(device.card_id()).and_then(|card| worst_failure(card));
    if let Some(failure) = failed.filter(|failure| failure.fatal) {
        return Some(Observation::Unreadable(failure));
    }
    if let Some(seen) = find(&device.id) {
        return Some(Observation::Seen(&seen.failures));
    }
    let mut unreadable = sighting.backend.unreadable.iter();
    let unreadable = unreadable.find(|unreadable| unreadable.card.covers(device));
    Some(match unreadable {
        Some(unreadable) => Observation::Unreadable(&unreadable.failure),
        None => failed.map_or_else(
            || observe_unlisted(&sighting.backend),
            Observation::Unreported,
        ),
    })
}

/// True if a partition was destroyed: its card is well and does not have it any more.
pub(super) fn was_dissolved(device: &Device, sighting: &BackendState) -> bool {
    let Kind::Partition { parent, .. } = &device.kind else {
        return false;
    };
    let seen = |id: &DeviceId| sighting.devices.iter().find(|seen| seen.id == *id);
    // A card with a failed call may have been unable to list its partitions.
    let card_is_well = |card: &Device| card.failures.is_empty();
    sighting.unwatched.is_none()
        && sighting.driver_stuck.is_none()
        && seen(&device.id).is_none()
        && seen(parent).is_some_and(|card| card_is_well(card))
}

/// Returns a call that failed on a device; a call that reports the device as lost takes precedence.
fn worst_failure(device: &Device) -> Option<&CallFailure> {
    device.failures.iter().max_by_key(|failure| failure.fatal)
}

/// Derives the state of a device that is not listed.
fn observe_unlisted(backend: &Backend) -> Observation<'_> {
    match backend.phase {
        Phase::NoDriver => Observation::NoDriver(&backend.message),
        Phase::DriverFailed => Observation::DriverFailed(&backend.message),
        _ => Observation::Missing("the driver does not list the device any more"),
    }
}
