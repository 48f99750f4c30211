use std::sync::Arc;

use config::{Handover, Method, NvidiaBackend, NvidiaHandover};
use model::{CauseKind, Entry};
use nvidia_rules::VENDORS;
use rstest::rstest;

use super::*;
use crate::{
    NodePlan, NoteKind,
    sample::{
        card_entry, config_with_pools, healthy_entry, plan_node, shared_pool, show_plan, sick,
        snapshot_with,
    },
};

const GPU: &str = "nvidia.com/gpu";

/// Config with one pool for everything and these settings for NVIDIA.
fn with(nvidia: NvidiaBackend, pool: Pool) -> Config {
    let mut config = config_with_pools(vec![pool]);
    config.backends.nvidia = nvidia;
    config
}

/// Settings with which units wait for their MPS daemon.
fn mps() -> NvidiaBackend {
    let mut nvidia = NvidiaBackend::default();
    nvidia.probe.mps_path = Some("/mps".into());
    nvidia
}

/// Settings with which units wait for their IMEX channels, if these are required.
fn imex(required: bool) -> NvidiaBackend {
    NvidiaBackend {
        imex_required: required,
        ..NvidiaBackend::default()
    }
}

/// Pool whose containers get these channels.
fn channelled(imex: &[u32]) -> Pool {
    Pool {
        handover: Handover {
            nvidia: NvidiaHandover {
                imex: imex.to_vec(),
                ..NvidiaHandover::default()
            },
            ..Handover::default()
        },
        ..Pool::of_all_devices("gpu", GPU)
    }
}

/// Snapshot with these channels.
fn seen(devices: Vec<Entry>, channels: &[u32]) -> Arc<Snapshot> {
    let mut seen = Arc::unwrap_or_clone(snapshot_with(devices, &[]));
    let companions = &mut seen.backends[0].extras.companions;
    *companions =
        std::mem::take(companions).with_class(nvidia_rules::companions::IMEX_CHANNEL, channels);
    Arc::new(seen)
}

fn units(plan: &NodePlan) -> String {
    let units = plan.offers.iter().flat_map(|offer| &offer.units);
    let line = |unit: &Unit| format!("{} {} {}\n", unit.id, unit.healthy, unit.reason);
    units.map(line).collect()
}

fn kinds(plan: &NodePlan) -> Vec<NoteKind> {
    plan.notes.iter().map(|note| note.kind).collect()
}

#[test]
fn without_their_daemon_units_of_mps_are_listed_and_unhealthy() {
    let pools = with(
        mps(),
        shared_pool(Method::Mps, 2, Pool::of_all_devices("gpu", GPU)),
    );
    let plan = plan_node(
        &pools,
        &snapshot_with(vec![card_entry(0)], &["nvidia.com/other"]),
    );
    insta::assert_snapshot!(units(&plan), @r"
    GPU-0::0 false no MPS control daemon is up for it: /mps/nvidia.com/gpu/.started is not there; start the daemon, or share by time-slicing
    GPU-0::1 false no MPS control daemon is up for it: /mps/nvidia.com/gpu/.started is not there; start the daemon, or share by time-slicing
    ");
    insta::assert_snapshot!(show_plan(&plan), @r"
    nvidia.com/gpu: GPU-0::0 GPU-0::1
    (nvidia.com/gpu is not handed out: no MPS control daemon is up for it: /mps/nvidia.com/gpu/.started is not there; start the daemon, or share by time-slicing)
    ");
    assert!(plan.notes.iter().all(|note| note.kind.is_problem()));
}

#[rstest]
#[case::the_daemon_is_up(mps(), Method::Mps, &[GPU])]
#[case::nobody_knows_where_daemons_are(NvidiaBackend::default(), Method::Mps, &[])]
#[case::shared_otherwise(mps(), Method::TimeSlicing, &[])]
#[case::auto_without_a_daemon_is_time_slicing(mps(), Method::Auto, &[])]
fn units_are_well_where_no_daemon_is_missing(
    #[case] nvidia: NvidiaBackend,
    #[case] method: Method,
    #[case] up: &[&str],
) {
    let pools = with(
        nvidia,
        shared_pool(method, 2, Pool::of_all_devices("gpu", GPU)),
    );
    let plan = plan_node(&pools, &snapshot_with(vec![card_entry(0)], up));
    assert_eq!(plan.offers[0].healthy_count(), 2);
    assert!(plan.notes.iter().all(|note| !note.kind.is_problem()));
}

#[test]
fn the_ids_are_the_same_with_and_without_the_daemon() {
    let pools = with(
        mps(),
        shared_pool(Method::Mps, 3, Pool::of_all_devices("gpu", GPU)),
    );
    let ids = |up: &[&str]| -> Vec<String> {
        let plan = plan_node(
            &pools,
            &snapshot_with(vec![card_entry(0), card_entry(1)], up),
        );
        let units = plan.offers[0].units.iter();
        units.map(|unit| unit.id.to_string()).collect()
    };
    assert_eq!(ids(&[]), ids(&[GPU]));
}

#[test]
fn a_device_that_is_unhealthy_keeps_its_own_reason() {
    let pools = with(
        mps(),
        shared_pool(Method::Mps, 2, Pool::of_all_devices("gpu", GPU)),
    );
    let devices = vec![sick(card_entry(0), CauseKind::Event, "XID 79")];
    let plan = plan_node(&pools, &snapshot_with(devices, &[]));
    assert!(plan.offers[0].units[0].reason.contains("XID 79"));
}

#[rstest]
#[case::all_there(true, &[0], &[0, 1], true)]
#[case::one_missing(true, &[0, 5], &[0], false)]
#[case::not_required(false, &[0], &[], true)]
#[case::none_asked_for(true, &[], &[], true)]
fn a_required_channel_that_is_missing_holds_units_back(
    #[case] required: bool,
    #[case] asked: &[u32],
    #[case] there: &[u32],
    #[case] healthy: bool,
) {
    let pools = with(imex(required), channelled(asked));
    let snapshot = seen(vec![card_entry(0)], there);
    let plan = plan_node(&pools, &snapshot);
    assert_eq!(plan.offers[0].units[0].healthy, healthy);
    match healthy {
        true => assert_eq!(kinds(&plan), []),
        false => {
            assert_eq!(kinds(&plan), [NoteKind::Waiting]);
            insta::assert_snapshot!(plan.offers[0].units[0].reason, @"IMEX channel 5 is required and /dev/nvidia-caps-imex-channels/channel5 is not visible to the agent; have the driver make it, or do not require it (`backends.nvidia.imexRequired`, in NVIDIA's config `imex.required`)");
        }
    }
    assert_eq!(
        missing_requirement(&pools, VENDORS.find_rules("nvidia"), &snapshot).is_none(),
        healthy
    );
}

#[test]
fn channels_are_no_matter_of_other_vendors() {
    let other = healthy_entry(model::Device::card_of("amd", "amd-0", "MI300X"));
    let plan = plan_node(&with(imex(true), channelled(&[0])), &seen(vec![other], &[]));
    assert_eq!(plan.offers[0].healthy_count(), 1);
    assert_eq!(kinds(&plan), []);
}

#[test]
fn a_channel_that_is_missing_is_told_even_without_a_device() {
    let mut pools = config_with_pools(vec![channelled(&[3, 1]), channelled(&[1, 2])]);
    pools.backends.nvidia = imex(true);
    let missing = missing_requirement(
        &pools,
        VENDORS.find_rules("nvidia"),
        &seen(Vec::new(), &[2]),
    );
    assert!(missing.unwrap().starts_with("IMEX channel 1 is required"));
    assert_eq!(
        missing_requirement(
            &pools,
            VENDORS.find_rules("nvidia"),
            &seen(Vec::new(), &[1, 2, 3])
        ),
        None
    );
}

#[test]
fn a_channel_that_is_missing_has_no_say_in_what_auto_comes_to() {
    let pool = shared_pool(Method::Auto, 2, channelled(&[3]));
    let plan = plan_node(
        &with(imex(true), pool),
        &snapshot_with(vec![card_entry(0)], &[GPU]),
    );
    assert_eq!(plan.offers[0].pool.sharing.method, Method::Mps);
    assert_eq!(kinds(&plan), [NoteKind::Sharing, NoteKind::Waiting]);
    assert_eq!(plan.offers[0].healthy_count(), 0);
}
