use config::{Method, Pool};
use model::{CauseKind, Snapshot, Version};
use rstest::rstest;

use super::*;
use crate::{
    NodePlan,
    sample::{
        card_entry, config_with_pools, healthy_entry, mig_card, mig_entry, plan_node, plan_of,
        pool_of_indices, shared_pool, show_plan, sick, snapshot_with,
    },
};

fn gpu() -> Pool {
    Pool::of_all_devices("gpu", "nvidia.com/gpu")
}

/// Plan for one pool with all devices, shared by this method, with a running MPS daemon.
fn planned(method: Method, replicas: u32, devices: Vec<Entry>) -> NodePlan {
    let pools = config_with_pools(vec![shared_pool(method, replicas, gpu())]);
    plan_node(&pools, &snapshot_with(devices, &["nvidia.com/gpu"]))
}

fn method(plan: &NodePlan) -> Method {
    plan.offers[0].pool.sharing.method
}

fn of_capability(capability: Option<&str>) -> Entry {
    let mut entry = card_entry(0);
    let attributes = &mut entry.device_mut().attributes;
    attributes.remove(&nvidia_rules::names::COMPUTE_CAPABILITY);
    if let Some(capability) = capability {
        let version: Version = capability.parse().unwrap();
        attributes.insert(nvidia_rules::names::COMPUTE_CAPABILITY, version.into());
    }
    entry
}

#[test]
fn a_shared_device_becomes_numbered_units_with_its_health_and_place() {
    let devices = vec![
        sick(card_entry(5), CauseKind::Event, "XID 79"),
        card_entry(1),
    ];
    let plan = planned(Method::TimeSlicing, 3, devices);
    let units = plan.offers[0].units.iter().map(|unit| {
        let Unit {
            id, device, reason, ..
        } = unit;
        format!(
            "{id} of {device}: {} {reason} {:?}\n",
            unit.healthy, unit.numa
        )
    });
    insta::assert_snapshot!(units.collect::<String>(), @r"
    GPU-1::0 of GPU-1: true  Some(0)
    GPU-1::1 of GPU-1: true  Some(0)
    GPU-1::2 of GPU-1: true  Some(0)
    GPU-5::0 of GPU-5: false XID 79 Some(1)
    GPU-5::1 of GPU-5: false XID 79 Some(1)
    GPU-5::2 of GPU-5: false XID 79 Some(1)
    ");
}

#[rstest]
#[case(Method::None, 4, &["GPU-0"])]
#[case(Method::TimeSlicing, 0, &["GPU-0"])]
#[case(Method::TimeSlicing, 1, &["GPU-0"])]
#[case(Method::Auto, 1, &["GPU-0"])]
#[case(Method::TimeSlicing, 2, &["GPU-0::0", "GPU-0::1"])]
#[case(Method::Mps, 2, &["GPU-0::0", "GPU-0::1"])]
#[case(Method::Auto, 2, &["GPU-0::0", "GPU-0::1"])]
fn ids_are_numbered_where_there_is_more_than_one(
    #[case] method: Method,
    #[case] replicas: u32,
    #[case] expected: &[&str],
) {
    let plan = planned(method, replicas, vec![card_entry(0)]);
    let ids: Vec<_> = plan.offers[0].units.iter().map(|u| u.id.as_str()).collect();
    assert_eq!(ids, expected);
}

#[test]
fn every_unit_is_found_by_its_id_however_many_there_are() {
    let plan = planned(Method::TimeSlicing, 12, vec![card_entry(0), card_entry(1)]);
    let offer = &plan.offers[0];
    assert_eq!(offer.units.len(), 24);
    for n in 0..12 {
        let unit = offer.unit(&format!("GPU-1::{n}")).unwrap();
        assert_eq!(unit.device.as_str(), "GPU-1");
    }
    assert_eq!(offer.unit("GPU-1"), None);
    assert_eq!(offer.unit("GPU-1::12"), None);
}

/// The only device of a WSL node, `all`, stands for every card.
#[test]
fn a_device_that_stands_for_all_is_shared_like_a_card() {
    let mut all = card_entry(0);
    all.device_mut().id = "all".into();
    all.device_mut().index = None;
    let plan = planned(Method::TimeSlicing, 2, vec![all]);
    insta::assert_snapshot!(show_plan(&plan), @"nvidia.com/gpu: all::0 all::1");
}

#[test]
fn mig_devices_are_shared_like_cards() {
    let pool = shared_pool(
        Method::TimeSlicing,
        2,
        Pool::of_all_devices("mig", "nvidia.com/mig-{profile}.shared"),
    );
    let plan = plan_of(
        &config_with_pools(vec![pool]),
        vec![mig_card(0), mig_entry(0, 0, "1g.5gb")],
    );
    insta::assert_snapshot!(show_plan(&plan), @r"
    nvidia.com/mig-1g.5gb.shared: MIG-0-0::0 MIG-0-0::1
    GPU-0 - Partitioned: it is in MIG mode and offered as its MIG devices: 1
    ");
}

#[test]
fn mps_sets_aside_what_it_cannot_serve() {
    let old = |id: &str, capability: &str| {
        let mut entry = of_capability(Some(capability));
        entry.device_mut().id = id.into();
        entry
    };
    let devices = vec![
        card_entry(1),
        mig_card(2),
        mig_entry(2, 0, "1g.5gb"),
        old("GPU-kepler", "3.0"),
        old("GPU-pascal", "6.1"),
        healthy_entry(model::Device::card_of("amd", "amd-0", "MI300X")),
    ];
    let plan = planned(Method::Mps, 17, devices.clone());
    let aside: Vec<_> = plan
        .aside
        .iter()
        .map(|a| format!("{}: {}", a.device, a.reason))
        .collect();
    insta::assert_snapshot!(aside.join("\n"), @r"
    GPU-2: it is in MIG mode, and none of its MIG devices is offered
    GPU-kepler: MPS needs compute capability 3.5, and the card has 3.0: share it by time-slicing, in a pool of its own
    GPU-pascal: 17 replicas are asked for and MPS serves at most 16 clients on the card: share it by time-slicing, in a pool of its own
    MIG-2-0: MPS does not serve MIG devices: share it by time-slicing, in a pool of its own
    amd-0: its vendor has no MPS: share it by time-slicing, in a pool of its own
    ");
    let plan = planned(Method::Mps, 16, devices);
    assert!(plan.offers[0].unit("GPU-pascal::15").is_some());
}

#[test]
fn mps_under_the_strategy_none_leaves_cards_in_mig_mode_out() {
    let mut pools = config_with_pools(vec![shared_pool(Method::Mps, 2, gpu())]);
    pools.backends.nvidia.mig = config::Mig::None;
    insta::assert_snapshot!(show_plan(&plan_of(&pools, vec![card_entry(0), mig_card(1)])), @r"
    nvidia.com/gpu: GPU-0::0 GPU-0::1
    GPU-1 of gpu - Sharing: MPS does not serve cards in MIG mode: share it by time-slicing, in a pool of its own
    ");
}

#[test]
fn auto_is_mps_where_cards_and_daemon_can() {
    let plan = planned(Method::Auto, 4, vec![card_entry(0), card_entry(1)]);
    assert_eq!(method(&plan), Method::Mps);
    insta::assert_snapshot!(plan.notes[0].text, @"nvidia.com/gpu is shared through MPS: its cards can, and the daemon is up");
}

#[rstest]
#[case::an_old_card(4, vec![card_entry(1), of_capability(Some("6.1"))], "GPU-0: MPS keeps clients to their share from compute capability 7.0 on, and that of the card is 6.1")]
#[case::a_card_that_does_not_tell(4, vec![of_capability(None)], "GPU-0: MPS keeps clients to their share from compute capability 7.0 on, and that of the card is not known")]
#[case::a_mig_device(4, vec![card_entry(0), mig_entry(1, 0, "1g.5gb")], "MIG-1-0: MPS does not serve MIG devices")]
#[case::too_many(49, vec![card_entry(0)], "GPU-0: 49 replicas are asked for and MPS serves at most 48 clients on the card")]
#[case::another_vendor(2, vec![healthy_entry(model::Device::card_of("amd", "amd-0", "MI300X"))], "amd-0: its vendor has no MPS")]
fn auto_is_time_slicing_elsewhere_and_says_why(
    #[case] replicas: u32,
    #[case] devices: Vec<Entry>,
    #[case] why: &str,
) {
    let count = devices.len() * replicas as usize;
    let plan = planned(Method::Auto, replicas, devices);
    assert_eq!(method(&plan), Method::TimeSlicing);
    assert_eq!(plan.offers[0].units.len(), count);
    let expected = format!("nvidia.com/gpu is shared by time-slicing, not through MPS: {why}");
    assert_eq!(plan.notes[0].text, expected);
    assert_eq!(
        plan.notes[0].resource.as_ref().unwrap().as_str(),
        "nvidia.com/gpu"
    );
}

#[test]
fn auto_waits_for_the_daemon_of_its_own_resource_and_keeps_its_ids() {
    let pools = config_with_pools(vec![shared_pool(Method::Auto, 4, gpu())]);
    let with = |mps: &[&str]| plan_node(&pools, &snapshot_with(vec![card_entry(0)], mps));
    let down = with(&["nvidia.com/gpu.shared"]);
    assert_eq!(method(&down), Method::TimeSlicing);
    insta::assert_snapshot!(down.notes[0].text, @"nvidia.com/gpu is shared by time-slicing, not through MPS: no MPS control daemon is up for it");
    let up = with(&["nvidia.com/gpu", "nvidia.com/gpu.shared"]);
    assert_eq!(method(&up), Method::Mps);
    assert_eq!(up.offers[0].units, down.offers[0].units);
}

#[test]
fn auto_with_one_unit_a_device_does_not_share() {
    let plan = planned(Method::Auto, 1, vec![card_entry(0)]);
    assert_eq!(method(&plan), Method::None);
    assert_eq!(plan.notes, []);
}

#[test]
fn auto_names_the_same_obstacle_in_any_order() {
    let pools = config_with_pools(vec![shared_pool(Method::Auto, 2, gpu())]);
    let with = |devices: [Entry; 2]| {
        let mut snapshot = Snapshot::clone(&snapshot_with(Vec::new(), &[]));
        snapshot.devices = devices.to_vec();
        plan_node(&pools, &std::sync::Arc::new(snapshot)).notes
    };
    let (old, part) = (of_capability(Some("6.1")), mig_entry(1, 0, "1g.5gb"));
    let notes = with([old.clone(), part.clone()]);
    assert!(notes[0].text.contains("GPU-0"), "{notes:?}");
    assert_eq!(with([part, old]), notes);
}

#[test]
fn auto_is_decided_for_each_resource_by_itself() {
    let pool = shared_pool(
        Method::Auto,
        2,
        Pool::of_all_devices("all", "nvidia.com/{index}"),
    );
    let old = of_capability(Some("6.1"));
    let names = ["nvidia.com/0", "nvidia.com/1"];
    let plan = plan_node(
        &config_with_pools(vec![pool]),
        &snapshot_with(vec![old, card_entry(1)], &names),
    );
    let methods: Vec<_> = plan.offers.iter().map(|o| o.pool.sharing.method).collect();
    assert_eq!(methods, [Method::TimeSlicing, Method::Mps]);
}

#[test]
fn an_absurd_number_of_replicas_is_refused_and_not_made() {
    for method in [Method::TimeSlicing, Method::Mps, Method::Auto] {
        let plan = planned(method, u32::MAX, vec![card_entry(0)]);
        assert_eq!(plan.offers.len(), 0);
        assert!(
            plan.aside[0].reason.contains("at most 4096"),
            "{:?}",
            plan.aside
        );
    }
    let plan = planned(Method::TimeSlicing, REPLICA_LIMIT, vec![card_entry(0)]);
    assert_eq!(plan.offers[0].units.len(), 4096);
}

#[test]
fn exclusive_and_shared_cards_live_on_one_node() {
    let pools = config_with_pools(vec![
        pool_of_indices(
            &["0"],
            shared_pool(
                Method::TimeSlicing,
                10,
                Pool::of_all_devices("shared", "nvidia.com/gpu.shared"),
            ),
        ),
        pool_of_indices(&["1", "2", "3"], gpu()),
    ]);
    let plan = plan_of(&pools, (0..4).map(card_entry).collect());
    insta::assert_snapshot!(show_plan(&plan), @r"
    nvidia.com/gpu: GPU-1 GPU-2 GPU-3
    nvidia.com/gpu.shared: GPU-0::0 GPU-0::1 GPU-0::2 GPU-0::3 GPU-0::4 GPU-0::5 GPU-0::6 GPU-0::7 GPU-0::8 GPU-0::9
    ");
}

/// Health of units in the kubelet's list, for each state of a device.
#[rstest]
#[case(State::Healthy, true, true)]
#[case(State::Unknown, true, false)]
#[case(State::Unhealthy, false, false)]
#[case(State::Maintenance, false, false)]
fn a_device_that_cannot_be_judged_is_told_as_the_config_says(
    #[case] state: State,
    #[case] usually: bool,
    #[case] strictly: bool,
) {
    let mut entry = card_entry(0);
    entry.verdict.state = state;
    for (unknown, healthy) in [
        (UnknownAs::Healthy, usually),
        (UnknownAs::Unhealthy, strictly),
    ] {
        let mut pools = config_with_pools(vec![shared_pool(Method::TimeSlicing, 10, gpu())]);
        pools.health.unknown = unknown;
        let plan = plan_of(&pools, vec![entry.clone()]);
        let units = &plan.offers[0].units;
        assert_eq!(units.len(), 10);
        assert!(units.iter().all(|unit| unit.healthy == healthy));
    }
}
