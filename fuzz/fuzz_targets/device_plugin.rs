//! Requests of the kubelet: any bytes that are a request get a valid answer, or a justified error.
#![no_main]

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use jiff::Timestamp;
use kubelet_api::{
    deviceplugin::{AllocateRequest, PreferredAllocationRequest},
    podresources::ListPodResourcesResponse,
};
use libfuzzer_sys::fuzz_target;
use model::{
    Ancestor, Device, DeviceId, DeviceNode, Entry, Link, NodeRole, Snapshot, State, Verdict,
};
use pool::Offer;
use prost::Message as _;

/// Number of cards, as on a large machine. The last one is unhealthy.
const CARDS: usize = 8;

static OFFER: LazyLock<Arc<Offer>> = LazyLock::new(|| {
    let mut snapshot = Snapshot::empty_at(Timestamp::UNIX_EPOCH);
    snapshot.devices = (0..CARDS).map(entry).collect();
    Arc::clone(&pool::offers(nvidia_rules::VENDORS, &Arc::new(snapshot))[0])
});

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = PreferredAllocationRequest::decode(bytes) {
        for container in &request.container_requests {
            let (available, required) = (
                &container.available_device_ids,
                &container.must_include_device_ids,
            );
            if let Ok(size) = usize::try_from(container.allocation_size) {
                prefer(available, required, size);
                prefer(&known(available), &known(required), size % (CARDS + 2));
            }
        }
    }
    if let Ok(request) = AllocateRequest::decode(bytes) {
        for container in &request.container_requests {
            grant(&container.device_ids);
            grant(&known(&container.device_ids));
        }
    }
    let _ = ListPodResourcesResponse::decode(bytes);
});

/// Checks that a preference is refused exactly if the request cannot be met.
fn prefer(available: &[String], required: &[String], size: usize) {
    let set = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<_>>();
    let (offered, musts) = (set(available), set(required));
    let possible = musts.is_subset(&offered) && musts.len() <= size && size <= offered.len();
    match place::prefer(&OFFER, available, required, size) {
        Ok(ids) => {
            let chosen: BTreeSet<String> = ids.iter().map(ToString::to_string).collect();
            assert_eq!((ids.len(), chosen.len()), (size, size));
            assert!(chosen.is_subset(&offered) && musts.is_subset(&chosen));
            assert!(possible);
        }
        Err(error) => assert!(!possible, "{error}"),
    }
}

/// Checks that exactly healthy ids without repetition are granted, each with its own node.
fn grant(ids: &[String]) {
    let distinct: BTreeSet<&String> = ids.iter().collect();
    let healthy = |id: &str| OFFER.unit(id).is_some_and(|unit| unit.healthy);
    let possible =
        !ids.is_empty() && distinct.len() == ids.len() && ids.iter().all(|id| healthy(id));
    match grant::grant_ids(&OFFER, ids) {
        Ok(given) => {
            assert!(possible);
            assert_eq!(given.edits.device_nodes.len(), ids.len() + 1);
        }
        Err(error) => assert!(!possible, "{error}"),
    }
}

/// Replaces ids by ids of our list, as a kubelet would send them, so that the fuzzer reaches more
/// than the refusals.
fn known(ids: &[String]) -> Vec<String> {
    let units = &OFFER.units;
    let pick = |id: &String| {
        let sum: usize = id.bytes().map(usize::from).sum();
        units[sum % units.len()].id.to_string()
    };
    ids.iter().map(pick).collect()
}

fn entry(number: usize) -> Entry {
    let id = |number: usize| DeviceId::new(format!("GPU-{number}"));
    let link = |peer: usize| Link {
        peer: id(peer),
        ancestor: peer.is_multiple_of(2).then_some(Ancestor::Switch),
        lanes: u32::from(peer.is_multiple_of(3)) * 12,
        switched: peer.is_multiple_of(4),
    };
    let peers = (0..CARDS).filter(|peer| *peer != number);
    let sick = number == CARDS - 1;
    Entry {
        device: Arc::new(Device {
            index: number.to_string().parse().ok(),
            numa: (!number.is_multiple_of(3)).then_some(u32::from(number > 3)),
            nodes: vec![
                node("/dev/nvidiactl".to_owned(), NodeRole::Control),
                node(format!("/dev/nvidia{number}"), NodeRole::Own),
            ],
            links: peers.map(link).collect(),
            ..Device::card_of("nvidia", id(number), "NVIDIA A100-SXM4-40GB")
        }),
        verdict: Verdict {
            state: if sick {
                State::Unhealthy
            } else {
                State::Healthy
            },
            causes: Vec::new(),
            warnings: Vec::new(),
        },
    }
}

fn node(path: String, role: NodeRole) -> DeviceNode {
    DeviceNode { path, role }
}
