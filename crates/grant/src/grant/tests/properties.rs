//! Properties of grants for all offers and all ids.

use std::sync::Arc;

use config::{Distinct, NvidiaHandover, Sharing};
use model::{DeviceId, Index, Snapshot};
use proptest::{prelude::*, sample::subsequence};

use super::*;

fn handover() -> impl Strategy<Value = Handover> {
    let lists = subsequence(
        vec![Auto, Envvar, VolumeMounts, CdiAnnotations, CdiCri],
        0..=5,
    );
    let ids = prop_oneof![Just(IdStrategy::Uuid), Just(IdStrategy::Index)];
    let roots = prop_oneof![Just("/"), Just("/run/nvidia/driver")];
    let imex = prop::collection::vec(0u32..4, 0..4);
    (lists, ids, roots, imex, any::<[bool; 4]>()).prop_map(|(lists, ids, root, imex, on)| {
        Handover {
            lists,
            ids,
            device_nodes: on[3],
            nvidia: NvidiaHandover {
                dev_root: root.into(),
                imex,
                gds: on[0],
                gdrcopy: on[1],
                mofed: on[2],
                ..NvidiaHandover::default()
            },
            ..Handover::default()
        }
    })
}

fn sharing() -> impl Strategy<Value = Sharing> {
    let method = prop_oneof![
        Just(Method::None),
        Just(Method::TimeSlicing),
        Just(Method::Mps)
    ];
    let distinct = prop_oneof![
        Just(Distinct::Require),
        Just(Distinct::Prefer),
        Just(Distinct::Off)
    ];
    (method, 1u32..4, any::<bool>(), distinct).prop_map(
        |(method, replicas, one_per_request, distinct)| Sharing {
            method,
            replicas,
            one_per_request,
            distinct,
        },
    )
}

/// Offers of cards, MIG devices and devices of other vendors, of which one may be unhealthy.
fn offers() -> impl Strategy<Value = Offer> {
    let machine = prop_oneof![
        Just(vec![
            indexed_card(0),
            indexed_card(1),
            indexed_card(2),
            indexed_card(3)
        ]),
        Just(vec![
            indexed_partition(0, 0),
            indexed_partition(0, 1),
            indexed_partition(1, 0),
            indexed_card(2)
        ]),
        Just(vec![foreign(), indexed_card(0), indexed_card(1)]),
        Just(vec![wsl()]),
        Just(vec![tegra_device()]),
    ];
    (machine, handover(), sharing(), any::<(bool, bool)>()).prop_map(
        |(devices, handover, sharing, (extras, sick))| {
            let pool = Pool {
                handover,
                sharing,
                ..Pool::of_all_devices("any", "nvidia.com/gpu")
            };
            let mut offer = offer_of_devices("nvidia.com/gpu", pool, devices);
            if sick {
                let id = offer.units[0].id.to_string();
                sicken(&mut offer, &id, "XID 79");
            }
            match extras {
                true => with_extras(all_extras(), offer),
                false => offer,
            }
        },
    )
}

/// Offers with some of their units in any order.
fn requests() -> impl Strategy<Value = (Offer, Vec<String>)> {
    offers().prop_flat_map(|offer| {
        let all: Vec<String> = offer.units.iter().map(|unit| unit.id.to_string()).collect();
        let count = all.len();
        let some = subsequence(all, 1..=count).prop_shuffle();
        (Just(offer), some)
    })
}

/// The grant without the parts that follow the order of the request, as documented.
fn without_order(mut given: Grant) -> Grant {
    let sorted = |text: &str| {
        let mut parts: Vec<&str> = text.split(',').collect();
        parts.sort_unstable();
        parts.join(",")
    };
    if let Some(visible) = given.edits.env.get_mut(VISIBLE_DEVICES) {
        *visible = sorted(visible);
    }
    given
        .edits
        .mounts
        .sort_by(|a, b| a.container_path.cmp(&b.container_path));
    given.cdi_devices.sort();
    let annotations = std::mem::take(&mut given.annotations).into_values();
    given.annotations = annotations
        .map(|names| (String::new(), sorted(&names)))
        .collect();
    given
}

proptest! {
    #[test]
    fn any_ids_are_granted_or_refused(offer in offers(), ids in prop::collection::vec(".*", 0..6)) {
        // Such an id exists in an offer only by chance.
        if let Err(error) = grant_ids(&offer, &ids) {
            prop_assert!(!error.to_string().is_empty());
        } else {
            prop_assert!(ids.iter().all(|id| offer.unit(id).is_some()));
        }
    }

    #[test]
    fn the_same_request_has_the_same_answer((offer, ids) in requests()) {
        prop_assert_eq!(grant_ids(&offer, &ids), grant_ids(&offer, &ids));
    }

    #[test]
    fn the_order_of_the_ids_changes_only_the_order_of_the_names(
        ((offer, ids), seed) in (requests(), any::<prop::sample::Index>()),
    ) {
        let mut other = ids.clone();
        other.rotate_left(seed.index(ids.len()));
        match (grant_ids(&offer, &ids), grant_ids(&offer, &other)) {
            (Ok(a), Ok(b)) => {
                if offer.pool.handover.ids == IdStrategy::Index {
                    prop_assert_eq!(&a, &b);
                }
                prop_assert_eq!(without_order(a), without_order(b));
            }
            (Err(a), Err(b)) => {
                prop_assert_eq!(std::mem::discriminant(&a), std::mem::discriminant(&b));
            }
            (a, b) => prop_assert!(false, "{:?} {:?}", a, b),
        }
    }

    #[test]
    fn nothing_but_the_granted_devices_and_the_pool_matters((mut offer, ids) in requests()) {
        let before = grant_ids(&offer, &ids);
        // Other devices, other verdicts, another moment.
        let mut snapshot = Snapshot::clone(&offer.snapshot);
        snapshot.generation += 1;
        snapshot.taken = jiff::Timestamp::MAX;
        let granted = |id: &DeviceId| {
            let mut units = ids.iter().filter_map(|id| offer.unit(id));
            units.any(|unit| unit.device == *id)
        };
        for entry in snapshot.devices.iter_mut().filter(|entry| !granted(&entry.device.id)) {
            entry.device_mut().nodes.clear();
            entry.device_mut().index = Some(Index::of_card(0));
        }
        offer.snapshot = Arc::new(snapshot);
        prop_assert_eq!(before, grant_ids(&offer, &ids));
    }

    #[test]
    fn nodes_are_sorted_each_once_and_never_lost((offer, ids) in requests()) {
        let Ok(given) = grant_ids(&offer, &ids) else { return Ok(()) };
        prop_assert!(given.edits.device_nodes.is_sorted_by(|a, b| a.path < b.path));
        if !offer.pool.handover.device_nodes {
            prop_assert!(given.edits.device_nodes.is_empty());
            return Ok(());
        }
        let named = !given.cdi_devices.is_empty() || !given.annotations.is_empty();
        for unit in ids.iter().filter_map(|id| offer.unit(id)) {
            let device = &offer.entry_of_unit(unit).unwrap().device;
            let carried = named && device.vendor == VENDOR;
            let has = |path: &String| given.edits.device_nodes.iter().any(|d| d.path == *path);
            prop_assert!(carried || device.nodes.iter().all(|node| has(&node.path)));
        }
    }

    #[test]
    fn names_are_of_the_granted_devices_each_once((offer, ids) in requests()) {
        let Ok(given) = grant_ids(&offer, &ids) else { return Ok(()) };
        let devices: BTreeSet<String> = ids
            .iter()
            .filter_map(|id| offer.unit(id))
            .filter_map(|unit| offer.entry_of_unit(unit))
            .filter(|entry| entry.device.vendor == VENDOR)
            .map(|entry| match offer.pool.handover.ids {
                IdStrategy::Uuid => entry.device.id.to_string(),
                IdStrategy::Index => match entry.device.index {
                    Some(index) => index.to_string(),
                    None => entry.device.id.to_string(),
                },
            })
            .collect();
        let named: Vec<String> = given.cdi_devices.iter()
            .filter_map(|name| name.strip_prefix("k8s.device-plugin.nvidia.com/gpu="))
            .map(str::to_owned)
            .collect();
        if offer.pool.handover.lists.contains(&CdiCri) {
            prop_assert_eq!(named.len(), devices.len());
            prop_assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), devices);
        } else {
            prop_assert!(named.is_empty());
        }
    }
}
