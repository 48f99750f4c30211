//! How devices are shared: the units a device becomes, what MPS can do, and what `auto` comes to.
//!
//! `auto` is decided anew for each snapshot, from the snapshot alone: a resource moves to MPS when
//! its daemon comes up and back to time-slicing when it goes. The ids stay the same, and what has
//! been granted stays as it was granted.

use config::{Method, Sharing, UnknownAs};
use model::{Device, Entry, ResourceName, State};
use rules::Vendors;

use crate::{Unit, UnitId};

/// The most units a device can become. A list with many more is too long for the kubelet.
pub const REPLICA_LIMIT: u32 = Sharing::MOST;

/// Why a device cannot be shared as it is asked for.
pub(crate) fn obstacle(device: &Device, sharing: &Sharing, vendors: Vendors) -> Option<String> {
    let replicas = sharing.replicas;
    if sharing.method != Method::None && replicas > REPLICA_LIMIT {
        return Some(format!(
            "{replicas} replicas are asked for and a device can have at most {REPLICA_LIMIT}"
        ));
    }
    // What `auto` comes to is decided for all devices of a resource together.
    if sharing.method == Method::Auto {
        return None;
    }
    vendors.of(&device.vendor).share_obstacle(device, sharing)
}

/// The first device that does not let `auto` be MPS, and why.
pub(crate) fn auto_obstacle(
    entries: &[&Entry],
    sharing: &Sharing,
    vendors: Vendors,
) -> Option<String> {
    entries.iter().find_map(|entry| {
        let device = &entry.device;
        let why = vendors.of(&device.vendor).share_obstacle(device, sharing)?;
        Some(format!("{}: {why}", device.id))
    })
}

/// The method that `auto` comes to for a resource, and why, given what speaks against MPS.
pub(crate) fn choose(resource: &ResourceName, obstacle: Option<String>) -> (Method, String) {
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

/// The units of a device. A device that is not shared, or has one unit, lends it its own id.
pub(crate) fn units(entry: &Entry, sharing: &Sharing, unknown: UnknownAs) -> Vec<Unit> {
    let device = &entry.device;
    let healthy = match entry.verdict.state {
        State::Healthy => true,
        // A monitor that is down takes no card away, unless somebody wants it so (rule 6).
        State::Unknown => unknown == UnknownAs::Healthy,
        State::Unhealthy | State::Maintenance => false,
    };
    let unit = |id: String| Unit {
        id: UnitId::new(id),
        device: device.id.clone(),
        healthy,
        reason: entry.verdict.reason(),
        numa: device.numa,
    };
    match (sharing.method, sharing.replicas) {
        (Method::None, _) | (_, 0 | 1) => vec![unit(device.id.to_string())],
        (_, replicas) => (0..replicas)
            .map(|n| unit(format!("{}::{n}", device.id)))
            .collect(),
    }
}

#[cfg(test)]
mod tests;
