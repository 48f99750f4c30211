//! Sample machines with NVIDIA's cards, and offers on them, for tests.

use std::sync::Arc;

use config::{Distinct, Handover, ListStrategy, Method, Pool, Sharing};
use jiff::Timestamp;
use model::{
    Backend, Companions, Device, DeviceNode, Entry, Extras, Index, Kind, NodeRole, Snapshot, names,
    sample,
};
use pool::{Offer, Unit, UnitId};
use rules::{CdiSupport, resolve_lists};

use crate::companions::{GDRCOPY, GDS, IMEX_CHANNEL, MOFED};

/// Makes an offer of `devices`, with as many units of each as the pool's sharing says.
pub fn offer_of_devices(resource: &str, pool: Pool, devices: Vec<Device>) -> Offer {
    let mut units: Vec<Unit> = devices
        .iter()
        .flat_map(|device| device_units(&pool.sharing, device))
        .collect();
    units.sort_by(|a, b| a.id.cmp(&b.id));
    let mut devices: Vec<Entry> = devices.into_iter().map(to_entry).collect();
    devices.sort_by(|a, b| a.device.id.cmp(&b.device.id));
    Offer {
        resource: resource.parse().expect("a sample is valid"),
        units,
        snapshot: Arc::new(Snapshot {
            devices,
            ..Snapshot::empty_at(Timestamp::UNIX_EPOCH)
        }),
        lists: resolve_lists(&pool.handover, CdiSupport::default()),
        pool: Arc::new(pool),
        vendors: crate::VENDORS,
    }
}

/// Makes an offer of four cards, indices 0 to 3, whose ids are in the opposite order.
pub fn four_cards(pool: Pool) -> Offer {
    offer_of_devices("nvidia.com/gpu", pool, (0..4).map(indexed_card).collect())
}

/// Makes the card of an index: 0 is `GPU-d`, 3 is `GPU-a`.
pub fn indexed_card(index: u32) -> Device {
    let letter = ["d", "c", "b", "a"][index as usize];
    Device {
        id: format!("GPU-{letter}").into(),
        pci: None,
        numa: None,
        ..sample::sample_card(index)
    }
}

/// Makes the MIG device `part` of the card with index `index`.
pub fn indexed_partition(index: u32, part: u32) -> Device {
    let (card, partition) = (indexed_card(index), sample::sample_partition(index, part));
    let caps = [9 * part + 12, 9 * part + 13];
    let caps = caps.map(|cap| {
        let path = format!("/dev/nvidia-caps/nvidia-cap{cap}");
        sample_node(&path, NodeRole::Capability)
    });
    Device {
        kind: Kind::Partition {
            parent: card.id,
            profile: Some("1g.5gb".to_owned()),
        },
        nodes: card.nodes.into_iter().chain(caps).collect(),
        pci: None,
        numa: None,
        ..partition
    }
}

/// Makes the one device under WSL.
pub fn wsl() -> Device {
    Device {
        nodes: vec![sample_node("/dev/dxg", NodeRole::Own)],
        ..Device::card_of("nvidia", "all", "NVIDIA GeForce RTX 4090")
            .with_attribute(names::COMBINED, true)
    }
}

/// Makes the one device of a Tegra system.
pub fn tegra_device() -> Device {
    Device {
        index: Some(Index::of_card(0)),
        ..Device::card_of("nvidia", "tegra", "NVIDIA Tegra Orin")
            .with_attribute(names::INTEGRATED, true)
    }
}

/// Makes the vGPU of a guest.
pub fn vgpu_card() -> Device {
    indexed_card(0).with_attribute(names::PRODUCT, "NVIDIA A40-24Q")
}

/// Makes a card of another vendor.
pub fn foreign() -> Device {
    Device {
        index: Some(Index::of_card(0)),
        nodes: vec![
            sample_node("/dev/dri/renderD128", NodeRole::Own),
            sample_node("/dev/kfd", NodeRole::Control),
        ],
        ..Device::card_of("amd", "0x1234", "AMD Instinct MI300X")
    }
}

/// Makes a pool whose handover is changed by `change`.
pub fn handover_pool(change: impl FnOnce(&mut Handover)) -> Pool {
    let mut pool = Pool::of_all_devices("shop", "nvidia.com/gpu");
    change(&mut pool.handover);
    pool
}

/// Makes a pool with these list strategies.
pub fn listed_pool(lists: &[ListStrategy]) -> Pool {
    handover_pool(|handover| handover.lists = lists.to_vec())
}

/// Makes a pool that shares its devices.
pub fn sharing_pool(method: Method, replicas: u32) -> Pool {
    Pool {
        sharing: Sharing {
            method,
            replicas,
            one_per_request: false,
            distinct: Distinct::Off,
        },
        ..handover_pool(|_| ())
    }
}

/// Returns the offer, on a machine that has `extras`.
pub fn with_extras(extras: Extras, offer: Offer) -> Offer {
    let backend = |name: &str, extras| Backend {
        name: name.to_owned(),
        extras,
        ..sample::running_backend()
    };
    let snapshot = Snapshot {
        backends: vec![backend("amd", Extras::default()), backend("nvidia", extras)],
        ..Snapshot::clone(&offer.snapshot)
    };
    Offer {
        snapshot: Arc::new(snapshot),
        ..offer
    }
}

/// Makes the extras of a machine that has every companion.
pub fn all_extras() -> Extras {
    let rdma = ["/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs0"];
    Extras {
        companions: Companions::default()
            .with_class(IMEX_CHANNEL, [0, 1])
            .with_class(GDS, ["/dev/nvidia-fs0", "/dev/nvidia-fs1"])
            .with_class(GDRCOPY, ["/dev/gdrdrv"])
            .with_class(MOFED, rdma),
        ..Extras::default()
    }
}

/// Makes a unit unhealthy.
pub fn sicken(offer: &mut Offer, id: &str, reason: &str) {
    let unit = offer.units.iter_mut().find(|unit| unit.id.as_str() == id);
    let unit = unit.expect("the offer has it");
    unit.healthy = false;
    unit.reason = reason.to_owned();
}

/// Returns ids in the form that the kubelet sends.
pub fn to_ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn device_units(sharing: &Sharing, device: &Device) -> Vec<Unit> {
    let unit = |id: String| Unit {
        id: UnitId::new(id),
        device: device.id.clone(),
        healthy: true,
        reason: String::new(),
        numa: None,
    };
    match sharing.method {
        Method::None => vec![unit(device.id.to_string())],
        _ => (0..sharing.replicas)
            .map(|n| unit(format!("{}::{n}", device.id)))
            .collect(),
    }
}

fn to_entry(device: Device) -> Entry {
    Entry::from(device)
}

fn sample_node(path: &str, role: NodeRole) -> DeviceNode {
    DeviceNode {
        path: path.to_owned(),
        role,
    }
}
