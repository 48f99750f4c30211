use config::{KindName, Mig, Policy, Selector};
use model::{CauseKind, State, names};

use super::*;
use crate::sample::{
    card_entry, config_with, config_with_pools, config_with_strategy, mig_card, mig_entry,
    plan_node, plan_of, pool_of_indices, shared_pool, show_plan, sick,
};

mod properties;
mod strategies;

fn gpu() -> Pool {
    Pool::of_all_devices("gpu", "nvidia.com/gpu")
}

fn by(selector: Selector, pool: Pool) -> Pool {
    Pool {
        selectors: vec![selector],
        ..pool
    }
}

fn model(pattern: &str) -> Selector {
    Selector {
        model: vec![pattern.to_owned()],
        ..Selector::default()
    }
}

fn index(index: &str) -> Selector {
    Selector {
        index: vec![index.to_owned()],
        ..Selector::default()
    }
}

#[test]
fn the_default_pools_divide_cards_and_mig_devices() {
    let devices = vec![
        card_entry(0),
        card_entry(1),
        mig_card(2),
        mig_entry(2, 0, "1g.5gb"),
        mig_entry(2, 1, "1g.10gb+me"),
        mig_entry(2, 2, "1g.5gb"),
    ];
    insta::assert_snapshot!(show_plan(&plan_of(&Config::default(), devices.clone())), @r"
    nvidia.com/gpu: GPU-0 GPU-1
    nvidia.com/mig-1g.10gb.me: MIG-2-1
    nvidia.com/mig-1g.5gb: MIG-2-0 MIG-2-2
    GPU-2 - Partitioned: it is in MIG mode and offered as its MIG devices: 3
    ");
    let snapshot = crate::sample::snapshot_with(devices, &[]);
    assert_eq!(
        offers(nvidia_rules::VENDORS, &snapshot),
        plan_node(&Config::default(), &snapshot).offers
    );
}

#[rstest::rstest]
#[case::alone(vec![], card_entry(0), &["gpu: GPU-0"])]
#[case::beside_its_like(vec![card_entry(1)], card_entry(0), &["gpu: GPU-0 GPU-1"])]
#[case::under_a_new_name(vec![card_entry(1)], mig_entry(2, 0, "1g.5gb"), &["gpu: GPU-1", "mig-1g.5gb: MIG-2-0"])]
#[case::beside_its_like_and_others(vec![card_entry(1), mig_entry(2, 0, "1g.5gb")], mig_entry(2, 1, "1g.5gb"), &["gpu: GPU-1", "mig-1g.5gb: MIG-2-0 MIG-2-1"])]
fn a_device_joins_its_resource(
    #[case] mut devices: Vec<Entry>,
    #[case] new: Entry,
    #[case] expected: &[&str],
) {
    devices.push(new);
    let plan = plan_of(&Config::default(), devices);
    let made = plan.offers.iter().map(|offer| {
        let ids: Vec<&str> = offer.units.iter().map(|unit| unit.id.as_str()).collect();
        format!("{}: {}", offer.resource.base_name(), ids.join(" "))
    });
    assert_eq!(made.collect::<Vec<_>>(), expected);
}

#[test]
fn a_node_without_devices_has_an_empty_plan() {
    let plan = plan_of(&Config::default(), Vec::new());
    assert_eq!(show_plan(&plan), "");
}

#[test]
fn an_unhealthy_device_stays_on_offer_with_its_reason() {
    let mut unsure = card_entry(1);
    unsure.verdict.state = State::Unknown;
    let devices = vec![sick(card_entry(0), CauseKind::Event, "XID 79"), unsure];
    let plan = plan_of(&Config::default(), devices);
    let offer = &plan.offers[0];
    assert_eq!((offer.units.len(), offer.healthy_count()), (2, 1));
    let unit = offer.unit("GPU-0").unwrap();
    assert_eq!((unit.healthy, unit.reason.as_str()), (false, "XID 79"));
    assert!(
        offer.unit("GPU-1").unwrap().healthy,
        "not known is not Unhealthy"
    );
}

#[test]
fn what_is_excluded_or_not_included_stays_out_with_its_partitions() {
    let pools = config_with(Pools {
        include: vec![model("*A100*")],
        exclude: vec![index("1"), index("2")],
        ..Pools::default()
    });
    let mut other = card_entry(3);
    other
        .device_mut()
        .attributes
        .insert(names::PRODUCT, "Tesla T4".into());
    let devices = vec![
        card_entry(0),
        card_entry(1),
        mig_card(2),
        mig_entry(2, 0, "1g.5gb"),
        other,
    ];
    insta::assert_snapshot!(show_plan(&plan_of(&pools, devices)), @r"
    nvidia.com/gpu: GPU-0
    GPU-1 - Excluded: excluded by index 1
    GPU-2 - Excluded: excluded by index 2
    GPU-3 - Excluded: `include` does not name it
    MIG-2-0 - Excluded: excluded by index 2
    ");
}

#[test]
fn an_excluded_mig_device_has_no_say_in_the_strategy() {
    let mut pools = Config::default();
    pools.backends.nvidia.mig = Mig::Single;
    pools.pools.exclude = vec![index("1")];
    let devices = vec![card_entry(0), mig_card(1), mig_entry(1, 0, "1g.5gb")];
    let plan = plan_of(&pools, devices);
    assert_eq!(plan.offers[0].units[0].id.as_str(), "GPU-0");
}

#[test]
fn a_pool_keeps_back_what_it_reserves_and_no_other_pool_gets_it() {
    let first = Pool {
        reserved: vec![index("1")],
        ..by(model("*A100*"), gpu())
    };
    let pools = config_with_pools(vec![first, Pool::of_all_devices("rest", "nvidia.com/rest")]);
    insta::assert_snapshot!(show_plan(&plan_of(&pools, vec![card_entry(0), card_entry(1)])), @r"
    nvidia.com/gpu: GPU-0
    GPU-1 of gpu - Reserved: reserved by index 1
    (pool `rest` takes no device of this node)
    ");
}

/// A reset of the card would end the work on its other partitions.
#[test]
fn a_mig_device_is_not_offered_where_cards_are_reset() {
    let mut all = Pool::of_all_devices("all", "nvidia.com/gpu");
    all.pre_start.mode = config::PreStartMode::Reset;
    let devices = vec![card_entry(0), mig_card(1), mig_entry(1, 0, "1g.5gb")];
    insta::assert_snapshot!(show_plan(&plan_of(&config_with_pools(vec![all]), devices)), @r"
    nvidia.com/gpu: GPU-0
    GPU-1 - Partitioned: it is in MIG mode, and none of its MIG devices is offered
    MIG-1-0 of all - PreStart: a MIG device cannot be reset alone, and its pool `all` has `preStart: reset`: give it a pool with another `preStart`
    ");
}

#[test]
fn two_models_are_two_resources() {
    let mut other = card_entry(1);
    other
        .device_mut()
        .attributes
        .insert(names::PRODUCT, "NVIDIA GeForce RTX 4090".into());
    let pools = config_with_pools(vec![Pool::of_all_devices("all", "nvidia.com/{model}")]);
    insta::assert_snapshot!(show_plan(&plan_of(&pools, vec![card_entry(0), other, card_entry(2)])), @r"
    nvidia.com/nvidia-a100-sxm4-40gb: GPU-0 GPU-2
    nvidia.com/nvidia-geforce-rtx-4090: GPU-1
    ");
}

#[test]
fn pools_that_agree_share_a_name() {
    let pools = config_with_pools(vec![
        pool_of_indices(&["0"], Pool::of_all_devices("one", "nvidia.com/gpu")),
        pool_of_indices(&["1"], Pool::of_all_devices("two", "{vendor}.com/gpu")),
        pool_of_indices(&["2"], Pool::of_all_devices("three", "nvidia.com/gpu")),
    ]);
    let plan = plan_of(&pools, vec![card_entry(0), card_entry(1), card_entry(2)]);
    assert_eq!(plan.offers[0].pool.name, "one");
    insta::assert_snapshot!(show_plan(&plan), @"nvidia.com/gpu: GPU-0 GPU-1 GPU-2");
}

#[test]
fn a_name_belongs_to_the_first_of_the_pools_that_differ() {
    let mut spread = pool_of_indices(&["2"], Pool::of_all_devices("spread", "nvidia.com/gpu"));
    spread.placement.policy = Policy::Spread;
    spread.handover.device_nodes = false;
    let shared = shared_pool(
        Method::TimeSlicing,
        2,
        Pool::of_all_devices("shared", "nvidia.com/gpu"),
    );
    let pools = config_with_pools(vec![
        pool_of_indices(&["0"], Pool::of_all_devices("one", "nvidia.com/gpu")),
        pool_of_indices(&["1"], shared),
        spread,
    ]);
    insta::assert_snapshot!(show_plan(&plan_of(&pools, vec![card_entry(0), card_entry(1), card_entry(2)])), @r"
    nvidia.com/gpu: GPU-0
    GPU-1 of shared - Conflict: pool `one` and pool `shared` both offer nvidia.com/gpu and differ in sharing: give one another `resource`, or both the same settings
    GPU-2 of spread - Conflict: pool `one` and pool `spread` both offer nvidia.com/gpu and differ in placement and handover: give one another `resource`, or both the same settings
    ");
    // The first pool has no device here, so that the name goes to the next one.
    let plan = plan_of(&pools, vec![card_entry(1)]);
    assert_eq!(plan.offers[0].units.len(), 2);
    assert_eq!(plan.offers[0].pool.name, "shared");
}

#[test]
fn a_name_that_cannot_be_made_costs_only_that_device() {
    let pools = config_with_pools(vec![Pool::of_all_devices("all", "nvidia.com/gpu-{memory}")]);
    let mut silent = card_entry(1);
    silent.device_mut().capacity.clear();
    insta::assert_snapshot!(show_plan(&plan_of(&pools, vec![card_entry(0), silent])), @r"
    nvidia.com/gpu-40gb: GPU-0
    GPU-1 of all - NoName: `nvidia.com/gpu-{memory}` needs its memory size, which it does not have or does not tell; change `resource` of pool `all`
    ");
}

#[test]
fn an_id_that_looks_like_a_replica_is_not_offered() {
    let mut posing = card_entry(1);
    posing.device_mut().id = "GPU-0::1".into();
    let pools = config_with_pools(vec![shared_pool(Method::TimeSlicing, 2, gpu())]);
    insta::assert_snapshot!(show_plan(&plan_of(&pools, vec![card_entry(0), posing])), @r"
    nvidia.com/gpu: GPU-0::0 GPU-0::1
    GPU-0::1 - BadId: its id `GPU-0::1` is empty or has `::` in it, which marks replicas
    ");
}

#[test]
fn a_mig_card_whose_devices_are_all_held_back_says_so() {
    let pools = config_with(Pools {
        exclude: vec![Selector {
            kind: Some(KindName::Partition),
            ..Selector::default()
        }],
        ..Pools::default()
    });
    let plan = plan_of(&pools, vec![mig_card(0), mig_entry(0, 0, "1g.5gb")]);
    insta::assert_snapshot!(show_plan(&plan), @r"
    GPU-0 - Partitioned: it is in MIG mode, and none of its MIG devices is offered
    MIG-0-0 - Excluded: excluded by kind partition
    ");
}

#[test]
fn what_is_set_aside_is_told_to_programs_too() {
    let pools = config_with_pools(vec![
        pool_of_indices(&["0"], gpu()),
        pool_of_indices(&["9"], Pool::of_all_devices("far", "a.com/far")),
    ]);
    let plan = plan_of(&pools, vec![card_entry(0), card_entry(1)]);
    insta::assert_json_snapshot!(plan.aside, @r#"
    [
      {
        "device": "GPU-1",
        "kind": "no-pool",
        "reason": "no selector of a pool matches it: add one, or exclude the device"
      }
    ]
    "#);
    insta::assert_json_snapshot!(plan.notes, @r#"
    [
      {
        "pool": "far",
        "kind": "empty",
        "text": "pool `far` takes no device of this node"
      }
    ]
    "#);
    assert!(plan.aside[0].kind.is_problem());
    assert!(!NotOfferedKind::Excluded.is_problem());
}

#[test]
fn default_pools_that_have_nothing_to_take_are_no_news() {
    for devices in [
        vec![card_entry(0)],
        vec![mig_card(0), mig_entry(0, 0, "1g.5gb")],
    ] {
        for strategy in [Mig::None, Mig::Single, Mig::Mixed] {
            let plan = plan_of(&config_with_strategy(strategy), devices.clone());
            assert_eq!(plan.notes, []);
        }
    }
}
