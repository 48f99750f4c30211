//! How devices are shared: the units a device becomes, what MPS can do, and what `auto` comes to.
//!
//! `auto` is decided anew for each snapshot, from the snapshot alone: a resource moves to MPS when
//! its daemon comes up and back to time-slicing when it goes. The ids stay the same, and what has
//! been granted stays as it was granted.

use config::{Method, Sharing, UnknownAs};
use model::{Device, Entry, Kind, ResourceName, Snapshot, State, Version};

use crate::{Unit, UnitId, hold};

/// The most units a device can become. A list with many more is too long for the kubelet.
pub const REPLICA_LIMIT: u32 = Sharing::MOST;

/// The first compute capability with MPS.
const MPS: [u64; 3] = [3, 5, 0];
/// The first compute capability on which MPS keeps clients to their share: Volta.
const VOLTA: [u64; 3] = [7, 0, 0];

/// The most clients that MPS serves on a card of this compute capability; `None` where there is no
/// MPS.
///
/// A card that does not tell its capability is taken for a new one: a call that failed must not
/// take its units away. (From CUDA 13.1 on there may be 60; no more than 48 are used.)
pub fn mps_clients(capability: Option<&Version>) -> Option<u32> {
    match capability.map_or(VOLTA, Version::numbers) {
        old if old < MPS => None,
        old if old < VOLTA => Some(16),
        _ => Some(48),
    }
}

/// Why a device cannot be shared as it is asked for.
pub(crate) fn obstacle(device: &Device, sharing: &Sharing) -> Option<String> {
    let replicas = sharing.replicas;
    if sharing.method != Method::None && replicas > REPLICA_LIMIT {
        return Some(format!(
            "{replicas} replicas are asked for and a device can have at most {REPLICA_LIMIT}"
        ));
    }
    match sharing.method {
        Method::Mps => mps_obstacle(device, replicas)
            .map(|why| format!("{why}: share it by time-slicing, in a pool of its own")),
        Method::None | Method::TimeSlicing | Method::Auto => None,
    }
}

/// What `auto` comes to for a resource, and why.
pub(crate) fn choose(
    resource: &ResourceName,
    entries: &[&Entry],
    sharing: &Sharing,
    snapshot: &Snapshot,
) -> (Method, String) {
    let obstacle = entries.iter().find_map(|entry| {
        let device = &entry.device;
        let why = mps_obstacle(device, sharing.replicas).or_else(|| no_shares(device))?;
        Some(format!("{}: {why}", device.id))
    });
    let why = match obstacle {
        Some(why) => why,
        None if !hold::has_daemon(resource, snapshot) => {
            "no MPS control daemon is up for it".to_owned()
        }
        None => {
            let text =
                format!("{resource} is shared through MPS: its cards can, and the daemon is up");
            return (Method::Mps, text);
        }
    };
    let text = format!("{resource} is shared by time-slicing, not through MPS: {why}");
    (Method::TimeSlicing, text)
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

/// Why MPS cannot serve a device.
fn mps_obstacle(device: &Device, replicas: u32) -> Option<String> {
    if device.vendor != "nvidia" {
        return Some("MPS is for NVIDIA's cards".to_owned());
    }
    match device.kind {
        Kind::Partition { .. } => return Some("MPS does not serve MIG devices".to_owned()),
        Kind::Card { partitioned: true } => {
            return Some("MPS does not serve cards in MIG mode".to_owned());
        }
        Kind::Card { partitioned: false } => {}
    }
    let capability = device.compute_capability();
    match mps_clients(capability) {
        None => Some(format!(
            "MPS needs compute capability 3.5, and the card has {}",
            capability.map(Version::as_str).unwrap_or_default()
        )),
        Some(most) if replicas > most => Some(format!(
            "{replicas} replicas are asked for and MPS serves at most {most} clients on the card"
        )),
        Some(_) => None,
    }
}

/// Why MPS would keep nobody to a share on a device.
fn no_shares(device: &Device) -> Option<String> {
    let capability = device.compute_capability();
    match capability {
        Some(capability) if capability.numbers() >= VOLTA => None,
        _ => Some(format!(
            "MPS keeps clients to their share from compute capability 7.0 on, and that of the card \
             is {}",
            capability.map_or("not known", Version::as_str)
        )),
    }
}

#[cfg(test)]
mod tests;
