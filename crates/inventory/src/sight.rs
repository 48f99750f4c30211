//! Derives the state of a device from a merged report of its backend.

use health::Sight;
use model::{Backend, CallFailure, Device, DeviceId, Kind, Phase};
use probe::Sighting;

/// Derives the state of a device from a merged report of its backend. `None` if the probe has not
/// looked yet.
pub(super) fn sight<'a>(device: &Device, sighting: &'a Sighting) -> Option<Sight<'a>> {
    let stuck = sighting.stuck.iter().find(|(card, _)| card.covers(device));
    if let Some(call) = stuck
        .map(|(_, call)| call)
        .or(sighting.driver_stuck.as_ref())
    {
        return Some(Sight::Stuck(call));
    }
    if let Some(why) = &sighting.unwatched {
        return Some(Sight::Unwatched(why));
    }
    if sighting.backend.phase == Phase::Starting {
        return None;
    }
    // A partition is only as healthy as its card, and nothing is known of it if nothing is known of
    // its card.
    let find = |id: &DeviceId| sighting.devices.iter().find(|seen| seen.id == *id);
    let failed = find(device.card()).and_then(|card| worst_failure(card));
    if let Some(failure) = failed.filter(|failure| failure.fatal) {
        return Some(Sight::Unreadable(failure));
    }
    if let Some(seen) = find(&device.id) {
        return Some(Sight::Seen(&seen.failures));
    }
    let mut unreadable = sighting.backend.unreadable.iter();
    let unreadable = unreadable.find(|unreadable| unreadable.card.covers(device));
    Some(match unreadable {
        Some(unreadable) => Sight::Unreadable(&unreadable.failure),
        None => failed.map_or_else(|| missing(&sighting.backend), Sight::Untold),
    })
}

/// True if a partition was destroyed: its card is well and does not have it any more.
pub(super) fn was_dissolved(device: &Device, sighting: &Sighting) -> bool {
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
fn missing(backend: &Backend) -> Sight<'_> {
    match backend.phase {
        Phase::NoDriver => Sight::NoDriver(&backend.message),
        Phase::DriverFailed => Sight::Failed(&backend.message),
        _ => Sight::Missing("the driver does not list the device any more"),
    }
}
