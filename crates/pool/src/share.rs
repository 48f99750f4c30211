//! Sharing of devices: the units of a device, and the method that `auto` chooses.
//!
//! `auto` is decided anew for each snapshot, from the snapshot alone. A resource changes to MPS
//! when its daemon starts, and back to time-slicing when the daemon ends. The ids stay the same.
//! Running containers keep what they were granted: the kubelet stores the answer of `Allocate` and
//! uses it again for every restart of the container.

use config::{Method, Sharing, UnknownAs};
use model::{Device, Entry, ResourceName, State};
use rules::Vendors;

use crate::{Unit, UnitId};

/// Highest number of units of a device. The list of a resource must stay below 4 MiB, the receive
/// limit of the kubelet's gRPC client (grpc-go's default); a longer one ends the stream.
pub const REPLICA_LIMIT: u32 = Sharing::MOST;

/// Returns the reason why a device cannot be shared as its pool demands, if there is one.
pub(crate) fn find_obstacle(
    device: &Device,
    sharing: &Sharing,
    vendors: Vendors,
) -> Option<String> {
    let replicas = sharing.replicas;
    if sharing.method != Method::None && replicas > REPLICA_LIMIT {
        return Some(format!(
            "{replicas} replicas are asked for and a device can have at most {REPLICA_LIMIT}"
        ));
    }
    // `auto` is decided later, for all devices of a resource together.
    if sharing.method == Method::Auto {
        return None;
    }
    vendors
        .find_rules(&device.vendor)
        .share_obstacle(device, sharing)
}

/// Returns the first device that prevents `auto` from choosing MPS, and the reason.
pub(crate) fn auto_obstacle(
    entries: &[&Entry],
    sharing: &Sharing,
    vendors: Vendors,
) -> Option<String> {
    entries.iter().find_map(|entry| {
        let device = &entry.device;
        let why = vendors
            .find_rules(&device.vendor)
            .share_obstacle(device, sharing)?;
        Some(format!("{}: {why}", device.id))
    })
}

/// Returns the method that `auto` chooses for a resource, with a sentence for the operator.
/// `obstacle` is the reason against MPS.
pub(crate) fn choose_auto_method(
    resource: &ResourceName,
    obstacle: Option<String>,
) -> (Method, String) {
    match obstacle {
        Some(why) => {
            let text = format!("{resource} is shared by time-slicing, not through MPS: {why}");
            (Method::TimeSlicing, text)
        }
        None => {
            let text =
                format!("{resource} is shared through MPS: its cards can, and the daemon is up");
            (Method::Mps, text)
        }
    }
}

/// Returns the units of a device. A device that is not shared, or has one unit, gives the unit its
/// own id. Units of a shared device have ids of the form of NVIDIA's plugin, `<id>::<n>`.
pub(crate) fn make_units(entry: &Entry, sharing: &Sharing, unknown: UnknownAs) -> Vec<Unit> {
    let device = &entry.device;
    let healthy = match entry.verdict.state {
        State::Healthy => true,
        // A monitor that fails takes no card out of service, unless the config demands it (rule 6).
        State::Unknown => unknown == UnknownAs::Healthy,
        State::Unhealthy | State::Maintenance => false,
    };
    let unit = |id: String| Unit {
        id: UnitId::new(id),
        device: device.id.clone(),
        healthy,
        reason: entry.verdict.join_evidence(),
        numa: device.numa,
    };
    // One replica needs no number: the unit has the device's own id, as without sharing.
    match (sharing.method, sharing.replicas) {
        (Method::None, _) | (_, 0 | 1) => vec![unit(device.id.to_string())],
        (_, replicas) => (0..replicas)
            .map(|n| unit(format!("{}::{n}", device.id)))
            .collect(),
    }
}

#[cfg(test)]
mod tests;
