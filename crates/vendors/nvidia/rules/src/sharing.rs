//! Limits of sharing through MPS: the cards that MPS serves, and the number of clients on each.

use config::{Method, Sharing};
use model::{Device, Kind, Version};

use crate::names::compute_capability;

/// Lowest compute capability with MPS.
const MPS: [u64; 3] = [3, 5, 0];
/// Lowest compute capability on which MPS limits clients to their share: Volta.
const VOLTA: [u64; 3] = [7, 0, 0];

/// Returns the reason why a device cannot be shared by the pool's method, or why `auto` does not
/// choose MPS for it.
pub(crate) fn method_obstacle(device: &Device, sharing: &Sharing) -> Option<String> {
    match sharing.method {
        Method::None | Method::TimeSlicing => None,
        Method::Mps => mps_obstacle(device, sharing.replicas)
            .map(|why| format!("{why}: share it by time-slicing, in a pool of its own")),
        Method::Auto => mps_obstacle(device, sharing.replicas).or_else(|| no_shares(device)),
    }
}

/// Returns the most clients that MPS serves on a card of this compute capability; `None` without
/// MPS.
///
/// An unknown capability counts as a new one: a failed call must not remove the card's units. MPS
/// of CUDA 13.1 and later may serve 60 clients; no more than 48 are used here.
fn mps_clients(capability: Option<&Version>) -> Option<u32> {
    match capability.map_or(VOLTA, Version::to_numbers) {
        old if old < MPS => None,
        // NVIDIA's mps-control-daemon allows only 16 clients on V100 (7.0) too, because it compares
        // with 7.5.
        old if old < VOLTA => Some(16),
        _ => Some(48),
    }
}

/// Returns the reason why MPS cannot serve a device; `None` if it can.
fn mps_obstacle(device: &Device, replicas: u32) -> Option<String> {
    match device.kind {
        Kind::Partition { .. } => return Some("MPS does not serve MIG devices".to_owned()),
        Kind::Card { partitioned: true } => {
            return Some("MPS does not serve cards in MIG mode".to_owned());
        }
        Kind::Card { partitioned: false } => {}
    }
    let capability = compute_capability(device);
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

/// Returns the reason why MPS would not limit clients to their share on a device; `None` if it
/// does.
fn no_shares(device: &Device) -> Option<String> {
    let capability = compute_capability(device);
    match capability {
        Some(capability) if capability.to_numbers() >= VOLTA => None,
        _ => Some(format!(
            "MPS keeps clients to their share from compute capability 7.0 on, and that of the card \
             is {}",
            capability.map_or("not known", Version::as_str)
        )),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Some("3.0"), None)]
    #[case(Some("3.5"), Some(16))]
    #[case(Some("6.1"), Some(16))]
    #[case(Some("7.0"), Some(48))]
    #[case(Some("7.5"), Some(48))]
    #[case(Some("8.9"), Some(48))]
    #[case(Some("10.0"), Some(48))]
    #[case(None, Some(48))]
    fn mps_serves_so_many_clients(#[case] capability: Option<&str>, #[case] most: Option<u32>) {
        let capability = capability.map(|text| text.parse::<Version>().unwrap());
        assert_eq!(mps_clients(capability.as_ref()), most);
    }
}
