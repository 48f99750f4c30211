//! Machines for the tests of placement: those of the simulator's profiles as the probe reports
//! them, and the graphs of go-gpuallocator's tests, for which the answers of NVIDIA's plugin are
//! known.

use std::sync::Arc;

use config::Pool;
use model::{Ancestor, Device, Entry, Link, Snapshot};
use pool::{Offer, Unit, UnitId};

/// NVLinks of a DGX-1 with V100 cards, each pair once.
const VOLTA: &[(usize, usize, u32)] = &[
    (0, 1, 1),
    (0, 2, 1),
    (0, 3, 2),
    (0, 4, 2),
    (1, 2, 2),
    (1, 3, 1),
    (1, 5, 2),
    (2, 3, 2),
    (2, 6, 1),
    (3, 7, 1),
    (4, 5, 1),
    (4, 6, 1),
    (4, 7, 2),
    (5, 6, 2),
    (5, 7, 1),
    (6, 7, 2),
];

/// Id of a card; ids sort as indices do.
pub(crate) fn id(n: usize) -> String {
    format!("GPU-{n:02}")
}

/// Cards with the connections that `way` returns: closest common point, lanes, switch.
pub(crate) fn cards(
    count: usize,
    way: impl Fn(usize, usize) -> (Option<Ancestor>, u32, bool),
) -> Vec<Device> {
    let card = |a: usize| {
        let peers = (0..count).filter(|b| *b != a);
        let link = |b: usize| {
            let (ancestor, lanes, switched) = way(a.min(b), a.max(b));
            Link {
                peer: id(b).into(),
                ancestor,
                lanes,
                switched,
            }
        };
        Device {
            index: a.to_string().parse().ok(),
            links: peers.map(link).collect(),
            ..Device::card_of("nvidia", id(a), "GPU")
        }
    };
    (0..count).map(card).collect()
}

/// DGX-1 with V100 cards.
pub(crate) fn volta() -> Vec<Device> {
    cards(8, |a, b| {
        let near = match (a / 2 == b / 2, a / 4 == b / 4) {
            (true, _) => Ancestor::Switch,
            (_, true) => Ancestor::HostBridge,
            _ => Ancestor::System,
        };
        (Some(near), lanes(a, b), false)
    })
}

/// Two DGX-1 in one machine, without links between the two halves.
pub(crate) fn volta_twice() -> Vec<Device> {
    cards(16, |a, b| {
        let near = match (a / 2 == b / 2, a / 4 == b / 4) {
            (true, _) => Ancestor::Switch,
            (_, true) => Ancestor::HostBridge,
            _ => Ancestor::System,
        };
        let lanes = if a / 8 == b / 8 {
            lanes(a % 8, b % 8)
        } else {
            0
        };
        (Some(near), lanes, false)
    })
}

/// DGX-1 with P100 cards: single lanes, and other pairs on the PCIe switches.
pub(crate) fn pascal() -> Vec<Device> {
    let switch = |n: usize| (n / 4, n % 2);
    cards(8, |a, b| {
        let near = match (switch(a) == switch(b), a / 4 == b / 4) {
            (true, _) => Ancestor::Switch,
            (_, true) => Ancestor::HostBridge,
            _ => Ancestor::System,
        };
        (Some(near), lanes(a, b).min(1), false)
    })
}

/// Four RTX 8000, joined in pairs by bridges. The PCIe way of the bridged pairs is not known.
pub(crate) fn rtx8000() -> Vec<Device> {
    cards(4, |a, b| match (a, b) {
        (0, 3) | (1, 2) => (None, 2, false),
        (0, 1) | (2, 3) => (Some(Ancestor::Node), 0, false),
        _ => (Some(Ancestor::System), 0, false),
    })
}

/// DGX A100: eight cards on one switch, two on each NUMA node.
pub(crate) fn dgx_a100() -> Vec<Device> {
    let mut cards = cards(8, |a, b| match a / 2 == b / 2 {
        true => (Some(Ancestor::Switches), 0, true),
        false => (Some(Ancestor::System), 0, true),
    });
    for (card, numa) in cards.iter_mut().zip([3, 3, 1, 1, 7, 7, 5, 5]) {
        card.numa = Some(numa);
    }
    cards
}

/// DGX-2: sixteen cards on one switch, in pairs, groups of four and boards of eight.
pub(crate) fn hgx2() -> Vec<Device> {
    let mut cards = cards(16, |a, b| {
        let near = match (a / 2 == b / 2, a / 4 == b / 4, a / 8 == b / 8) {
            (true, ..) => Ancestor::Switch,
            (_, true, _) => Ancestor::Switches,
            (.., true) => Ancestor::Node,
            _ => Ancestor::System,
        };
        (Some(near), 0, true)
    });
    for (at, card) in cards.iter_mut().enumerate() {
        card.numa = u32::try_from(at / 8).ok();
    }
    cards
}

/// Offer of some devices, each with `replicas` units, under a pool.
pub(crate) fn offer(devices: Vec<Device>, replicas: usize, pool: Pool) -> Offer {
    let unit = |device: &Device, id: String| Unit {
        id: UnitId::new(id),
        device: device.id.clone(),
        healthy: true,
        reason: String::new(),
        numa: device.numa,
    };
    let mut units = Vec::new();
    for device in &devices {
        match replicas {
            1 => units.push(unit(device, device.id.to_string())),
            _ => units.extend((0..replicas).map(|n| unit(device, format!("{}::{n}", device.id)))),
        }
    }
    units.sort_by(|a, b| a.id.cmp(&b.id));
    let mut snapshot = Snapshot::empty_at(jiff::Timestamp::UNIX_EPOCH);
    snapshot.devices = devices.into_iter().map(entry).collect();
    snapshot
        .devices
        .sort_by(|a, b| a.device.id.cmp(&b.device.id));
    Offer {
        resource: "nvidia.com/gpu".parse().expect("it is one"),
        units,
        snapshot: Arc::new(snapshot),
        lists: rules::resolve_lists(&pool.handover, rules::CdiSupport::default()),
        pool: Arc::new(pool),
        vendors: nvidia_rules::VENDORS,
    }
}

fn entry(device: Device) -> Entry {
    Entry::from(device)
}

fn lanes(a: usize, b: usize) -> u32 {
    let pair = VOLTA.iter().find(|(x, y, _)| (*x, *y) == (a, b));
    pair.map_or(0, |(_, _, lanes)| *lanes)
}
