//! Properties of plans for any devices and any config.

use config::{Distinct, Template};
use model::{Kind, Version, names};
use proptest::{prelude::*, sample::select};

use super::*;
use crate::sample::snapshot_with;

fn devices() -> impl Strategy<Value = Vec<Entry>> {
    let parts = (0..4u8, prop::bool::ANY).prop_flat_map(|(kind, other)| {
        let profile = select(vec![
            Some("1g.5gb"),
            Some("2g.10gb"),
            Some("1c.2g.10gb"),
            Some("1g.5gb+me"),
            None,
            Some("?!"),
        ]);
        let parts = prop::collection::vec((profile, prop::bool::ANY), 0..4);
        (Just(kind), Just(other), parts)
    });
    prop::collection::vec(parts, 0..8).prop_map(|cards| {
        let mut all = Vec::new();
        for ((kind, other, parts), n) in cards.into_iter().zip(0..) {
            let mut whole = if kind == 0 {
                card_entry(n)
            } else {
                mig_card(n)
            };
            if other {
                whole
                    .device_mut()
                    .attributes
                    .insert(names::PRODUCT, "Tesla T4".into());
                whole.device_mut().capacity.clear();
                let attributes = &mut whole.device_mut().attributes;
                attributes.insert(
                    nvidia_rules::names::COMPUTE_CAPABILITY,
                    Version::of_two(7, 5).into(),
                );
            }
            if kind == 1 {
                whole.device_mut().vendor = "amd".to_owned();
            }
            if kind == 3 {
                whole.device_mut().id = format!("GPU-{n}::0").as_str().into();
            }
            all.push(whole);
            if kind != 0 {
                let made = parts.into_iter().zip(0..).map(|((profile, gone), m)| {
                    let part = mig_entry(n, m, profile);
                    match gone {
                        true => sick(part, CauseKind::Gone, "gone"),
                        false => part,
                    }
                });
                all.extend(made);
            }
        }
        all
    })
}

fn selector() -> impl Strategy<Value = Selector> {
    prop_oneof![
        Just(Selector::default()),
        (0..8u32).prop_map(|n| index(&n.to_string())),
        select(vec!["*A100*", "Tesla*", "nothing"]).prop_map(model),
        select(vec![KindName::Card, KindName::Partition]).prop_map(|kind| Selector {
            kind: Some(kind),
            ..Selector::default()
        }),
        select(vec!["1g.*", "*+me"]).prop_map(|profile| Selector {
            profile: vec![profile.to_owned()],
            ..Selector::default()
        }),
    ]
}

fn some_pools() -> impl Strategy<Value = Config> {
    let template = select(vec![
        "nvidia.com/gpu",
        "nvidia.com/{profile}",
        "nvidia.com/{model}",
        "nvidia.com/gpu-{memory}",
        "nvidia.com/gpu-{index}",
        "{vendor}.com/gpu",
        "not a name",
    ]);
    let method = select(vec![
        Method::None,
        Method::TimeSlicing,
        Method::Mps,
        Method::Auto,
    ]);
    let sharing = (method, select(vec![0u32, 1, 2, 11, 50]), prop::bool::ANY);
    let few = |most| prop::collection::vec(selector(), 0..most);
    let limit = prop::option::of(0..4u32);
    let pool = (template, sharing, few(3), few(2), limit).prop_map(
        |(template, sharing, takes, keeps, limit)| {
            let (method, replicas, one_per_request) = sharing;
            Pool {
                selectors: takes,
                reserved: keeps,
                limit,
                resource: Template(template.to_owned()),
                sharing: Sharing {
                    method,
                    replicas,
                    one_per_request,
                    distinct: Distinct::Prefer,
                },
                ..gpu()
            }
        },
    );
    let pools = prop::collection::vec(pool, 0..4);
    let strategy = select(vec![Mig::None, Mig::Single, Mig::Mixed]);
    (strategy, few(2), few(2), pools).prop_map(|(mig, include, exclude, mut pools)| {
        for (pool, n) in pools.iter_mut().zip(0..) {
            pool.name = format!("pool-{n}");
        }
        let mut config = config_with(Pools {
            include,
            exclude,
            pools,
        });
        config.backends.nvidia.mig = mig;
        config
    })
}

/// Ids of each resource.
fn ids(plan: &NodePlan) -> BTreeMap<String, Vec<String>> {
    let ids = |offer: &Arc<Offer>| offer.units.iter().map(|u| u.id.to_string()).collect();
    plan.offers
        .iter()
        .map(|o| (o.resource.to_string(), ids(o)))
        .collect()
}

proptest! {
    #[test]
    fn every_device_is_in_one_offer_or_set_aside_once(devices in devices(), pools in some_pools()) {
        let plan = plan_of(&pools, devices.clone());
        let offered = plan.offers.iter().flat_map(|offer| {
            let devices: BTreeSet<&DeviceId> = offer.units.iter().map(|u| &u.device).collect();
            devices
        });
        let mut found: Vec<&DeviceId> = offered.chain(plan.aside.iter().map(|a| &a.device)).collect();
        found.sort();
        let mut all: Vec<&DeviceId> = devices.iter().map(|e| &e.device.id).collect();
        all.sort();
        prop_assert_eq!(found, all);
        prop_assert!(plan.aside.iter().all(|aside| !aside.reason.is_empty()));
    }

    #[test]
    fn lists_are_sorted_and_ids_are_unique_on_the_node(devices in devices(), pools in some_pools()) {
        let plan = plan_of(&pools, devices);
        prop_assert!(plan.offers.is_sorted_by(|a, b| a.resource < b.resource));
        prop_assert!(plan.aside.is_sorted_by(|a, b| a.device < b.device));
        let mut seen = BTreeSet::new();
        for offer in plan.offers.iter() {
            prop_assert!(!offer.units.is_empty());
            prop_assert!(offer.units.is_sorted_by(|a, b| a.id < b.id));
            prop_assert!(offer.units.iter().all(|unit| seen.insert(unit.id.to_string())));
            prop_assert!(offer.pool.sharing.method != Method::Auto);
        }
    }

    #[test]
    fn the_units_of_a_device_are_alike_and_as_many_as_asked_for(devices in devices(), pools in some_pools()) {
        let plan = plan_of(&pools, devices);
        for offer in plan.offers.iter() {
            let sharing = &offer.pool.sharing;
            let each = match sharing.method {
                Method::None => 1,
                _ => sharing.replicas.max(1) as usize,
            };
            for unit in &offer.units {
                let entry = offer.entry_of_unit(unit).unwrap();
                prop_assert_eq!(unit.numa, entry.device.numa);
                prop_assert_eq!(unit.healthy, entry.verdict.state != State::Unhealthy);
                prop_assert_eq!(&unit.reason, &entry.verdict.join_evidence());
                let same = offer.units.iter().filter(|other| other.device == unit.device);
                prop_assert_eq!(same.count(), each);
            }
        }
    }

    #[test]
    fn mps_is_given_only_what_it_can_serve(devices in devices(), pools in some_pools(), up: bool) {
        let names: &[&str] = if up { &["nvidia.com/gpu", "nvidia.com/gpu-40gb"] } else { &[] };
        let plan = plan_node(&pools, &snapshot_with(devices, names));
        for offer in plan.offers.iter().filter(|o| o.pool.sharing.method == Method::Mps) {
            prop_assert!(offer.pool.sharing.replicas <= 48);
            for unit in &offer.units {
                let device = &offer.entry_of_unit(unit).unwrap().device;
                prop_assert_eq!(&device.kind, &Kind::Card { partitioned: false });
                prop_assert_eq!(device.vendor.as_str(), "nvidia");
            }
        }
    }

    #[test]
    fn the_order_of_the_snapshot_changes_nothing(
        (devices, mixed) in devices().prop_flat_map(|d| (Just(d.clone()), Just(d).prop_shuffle())),
        pools in some_pools(),
    ) {
        let as_is = |devices| {
            let mut snapshot = Snapshot::clone(&snapshot_with(Vec::new(), &["nvidia.com/gpu"]));
            snapshot.devices = devices;
            plan_node(&pools, &Arc::new(snapshot))
        };
        let (one, other) = (as_is(devices), as_is(mixed));
        prop_assert_eq!(ids(&one), ids(&other));
        prop_assert_eq!(one.aside, other.aside);
        prop_assert_eq!(one.notes, other.notes);
        for (one, other) in one.offers.iter().zip(other.offers.iter()) {
            prop_assert_eq!(&one.units, &other.units);
            prop_assert_eq!(&one.pool, &other.pool);
        }
    }

    /// Under `single` a new device can change the profile that is offered, and in a pool with a
    /// limit it can take the place of another. Otherwise it adds to its own resource and changes no
    /// other.
    #[test]
    fn a_new_device_changes_no_other_resource(
        devices in devices(),
        pools in some_pools(),
        strategy in select(vec![Mig::None, Mig::Mixed]),
        part: bool,
    ) {
        let mut pools = pools;
        pools.backends.nvidia.mig = strategy;
        for pool in &mut pools.pools.pools {
            pool.limit = None;
        }
        let before = plan_of(&pools, devices.clone());
        let new = if part { mig_entry(9, 0, "1g.5gb") } else { card_entry(9) };
        let joins = |plan: &NodePlan| plan.offers.iter().find_map(|offer| {
            let joins = offer.units.iter().any(|unit| unit.device == new.device.id);
            joins.then(|| offer.resource.to_string())
        });
        let after = plan_of(&pools, [devices, vec![new.clone()]].concat());
        let joined = joins(&after);
        let others = |plan: &NodePlan| {
            let mut all = ids(plan);
            all.retain(|resource, _| Some(resource) != joined.as_ref());
            all
        };
        prop_assert_eq!(others(&before), others(&after));
    }
}
