use config::Mig;
use model::CauseKind;

use crate::{
    NotOfferedKind,
    sample::{
        card_entry, config_with_strategy, healthy_entry, mig_card, mig_entry, plan_of, show_plan,
        sick,
    },
};

/// Plan as text, without its notes.
fn told(strategy: Mig, devices: Vec<model::Entry>) -> String {
    let mut plan = plan_of(&config_with_strategy(strategy), devices);
    plan.notes.clear();
    show_plan(&plan)
}

/// Card 0 whole; card 1 in MIG mode with two profiles; card 2 in MIG mode without MIG devices.
fn blend() -> Vec<model::Entry> {
    vec![
        card_entry(0),
        mig_card(1),
        mig_entry(1, 0, "1g.5gb"),
        mig_entry(1, 1, "1g.5gb"),
        mig_entry(1, 2, "3g.20gb"),
        mig_card(2),
    ]
}

#[test]
fn none_offers_every_card_whole_and_no_mig_device() {
    insta::assert_snapshot!(told(Mig::None, blend()), @r"
    nvidia.com/gpu: GPU-0 GPU-1 GPU-2
    MIG-1-0 - Whole: the MIG strategy is none: cards are offered whole
    MIG-1-1 - Whole: the MIG strategy is none: cards are offered whole
    MIG-1-2 - Whole: the MIG strategy is none: cards are offered whole
    ");
}

#[test]
fn mixed_offers_mig_devices_by_shape_and_whole_cards_beside_them() {
    insta::assert_snapshot!(told(Mig::Mixed, blend()), @r"
    nvidia.com/gpu: GPU-0
    nvidia.com/mig-1g.5gb: MIG-1-0 MIG-1-1
    nvidia.com/mig-3g.20gb: MIG-1-2
    GPU-1 - Partitioned: it is in MIG mode and offered as its MIG devices: 3
    GPU-2 - NoPartitions: it is in MIG mode and has no MIG devices: create some, or switch MIG mode off
    ");
}

#[test]
fn single_serves_the_commonest_shape_and_says_what_does_not_fit() {
    insta::assert_snapshot!(told(Mig::Single, blend()), @r"
    nvidia.com/gpu: MIG-1-0 MIG-1-1
    GPU-0 - Strategy: the MIG strategy is single and migEnabled is not the same on all cards: the MIG devices of the type 1g.5gb are served and whole cards are not; use the strategy mixed
    GPU-1 - Partitioned: it is in MIG mode and offered as its MIG devices: 2
    GPU-2 - NoPartitions: it is in MIG mode and has no MIG devices: create some, or switch MIG mode off
    MIG-1-2 - Strategy: the MIG strategy is single and there is more than one type of MIG device: 1g.5gb is served and 3g.20gb is not; use the strategy mixed
    ");
}

#[test]
fn single_on_a_uniform_node_offers_all_mig_devices_as_cards() {
    let devices = vec![
        mig_card(0),
        mig_entry(0, 0, "3g.20gb"),
        mig_entry(0, 1, "3g.20gb"),
        mig_card(1),
        mig_entry(1, 0, "3g.20gb"),
    ];
    insta::assert_snapshot!(told(Mig::Single, devices), @r"
    nvidia.com/gpu: MIG-0-0 MIG-0-1 MIG-1-0
    GPU-0 - Partitioned: it is in MIG mode and offered as its MIG devices: 2
    GPU-1 - Partitioned: it is in MIG mode and offered as its MIG devices: 1
    ");
}

#[test]
fn without_mig_all_strategies_are_alike() {
    for strategy in [Mig::None, Mig::Single, Mig::Mixed] {
        let plan = plan_of(
            &config_with_strategy(strategy),
            vec![card_entry(0), card_entry(1)],
        );
        assert_eq!(plan.offers.len(), 1);
        assert_eq!(plan.offers[0].units.len(), 2);
        assert_eq!(plan.aside, []);
    }
}

#[test]
fn an_emptied_mig_card_costs_only_itself() {
    for strategy in [Mig::Single, Mig::Mixed] {
        let plan = plan_of(
            &config_with_strategy(strategy),
            vec![card_entry(0), mig_card(1)],
        );
        assert_eq!(plan.offers[0].units.len(), 1, "{strategy:?}");
        assert_eq!(plan.aside[0].device.as_str(), "GPU-1");
        assert_eq!(plan.aside[0].kind, NotOfferedKind::NoPartitions);
        let plan = plan_of(&config_with_strategy(strategy), vec![mig_card(1)]);
        assert_eq!((plan.offers.len(), plan.aside.len()), (0, 1));
    }
}

#[test]
fn a_mig_card_whose_devices_are_gone_is_empty() {
    let gone = sick(mig_entry(0, 0, "1g.5gb"), CauseKind::Gone, "it is gone");
    let plan = plan_of(&config_with_strategy(Mig::Mixed), vec![mig_card(0), gone]);
    assert_eq!(plan.offers[0].healthy_count(), 0);
    assert_eq!(plan.aside[0].kind, NotOfferedKind::NoPartitions);
}

#[test]
fn a_mig_card_counts_only_what_is_there() {
    let gone = sick(mig_entry(0, 0, "1g.5gb"), CauseKind::Gone, "it is gone");
    let devices = vec![mig_card(0), gone, mig_entry(0, 1, "1g.5gb")];
    insta::assert_snapshot!(told(Mig::Mixed, devices), @r"
    nvidia.com/mig-1g.5gb: MIG-0-0 MIG-0-1
    GPU-0 - Partitioned: it is in MIG mode and offered as its MIG devices: 1
    ");
}

#[rstest::rstest]
#[case::more_devices(&[(0, "1g.5gb"), (0, "1g.5gb"), (1, "3g.20gb")], "1g.5gb")]
#[case::more_cards(&[(0, "1g.5gb"), (0, "1g.5gb"), (1, "3g.20gb"), (2, "3g.20gb")], "3g.20gb")]
#[case::first_by_name(&[(0, "3g.20gb"), (1, "2g.10gb")], "2g.10gb")]
#[case::all_compute_slices_or_not(&[(0, "1c.3g.20gb"), (0, "1c.3g.20gb"), (1, "3g.20gb")], "1c.3g.20gb")]
fn the_shape_that_single_serves(#[case] made: &[(u32, &str)], #[case] expected: &str) {
    let devices = made
        .iter()
        .zip(0..)
        .map(|((card, profile), m)| mig_entry(*card, m, *profile));
    let plan = plan_of(&config_with_strategy(Mig::Single), devices.collect());
    let offer = &plan.offers[0];
    assert_eq!(offer.resource.as_str(), "nvidia.com/gpu");
    for unit in &offer.units {
        let device = &offer.entry_of_unit(unit).unwrap().device;
        assert_eq!(device.partition_profile(), Some(expected));
    }
    let served = made.iter().filter(|(_, profile)| *profile == expected);
    assert_eq!(offer.units.len(), served.count());
    assert!(
        plan.aside
            .iter()
            .all(|a| a.kind == NotOfferedKind::Strategy)
    );
}

#[test]
fn under_single_the_shapes_of_yesterday_do_not_stand_in_the_way() {
    let gone = |m| sick(mig_entry(0, m, "1g.5gb"), CauseKind::Gone, "it is gone");
    let cut_anew = vec![
        mig_card(0),
        gone(0),
        gone(1),
        gone(2),
        mig_entry(0, 7, "3g.20gb"),
    ];
    insta::assert_snapshot!(told(Mig::Single, cut_anew), @r"
    nvidia.com/gpu: MIG-0-7
    GPU-0 - Partitioned: it is in MIG mode and offered as its MIG devices: 1
    MIG-0-0 - Gone: it is gone, and no 1g.5gb is served any more
    MIG-0-1 - Gone: it is gone, and no 1g.5gb is served any more
    MIG-0-2 - Gone: it is gone, and no 1g.5gb is served any more
    ");
    let switched_off = vec![card_entry(0), gone(0), gone(1)];
    insta::assert_snapshot!(told(Mig::Single, switched_off), @r"
    nvidia.com/gpu: GPU-0
    MIG-0-0 - Gone: it is gone, and no 1g.5gb is served any more
    MIG-0-1 - Gone: it is gone, and no 1g.5gb is served any more
    ");
    // Without any other device the ones that are gone stay listed as Unhealthy.
    let plan = plan_of(
        &config_with_strategy(Mig::Single),
        vec![mig_card(0), gone(0), gone(1)],
    );
    assert_eq!(
        (plan.offers[0].units.len(), plan.offers[0].healthy_count()),
        (2, 0)
    );
}

#[test]
fn the_strategy_leaves_other_vendors_alone() {
    let other = |mut entry: model::Entry, id: &str| {
        entry.device_mut().vendor = "amd".to_owned();
        entry.device_mut().id = id.into();
        entry
    };
    let config = |strategy| {
        let mut config = config_with_strategy(strategy);
        config.pools.pools = vec![config::Pool::of_all_devices("all", "{vendor}.com/gpu")];
        config
    };
    for strategy in [Mig::None, Mig::Single, Mig::Mixed] {
        let devices = vec![
            mig_entry(0, 0, "1g.5gb"),
            other(card_entry(1), "amd-whole"),
            other(mig_entry(2, 0, "cpx"), "amd-part"),
            healthy_entry(model::Device::card_of("amd", "amd-bare", "MI300X")),
        ];
        let plan = plan_of(&config(strategy), devices);
        let amd = &plan.offers[0];
        assert_eq!(amd.resource.as_str(), "amd.com/gpu");
        assert_eq!(amd.units.len(), 3, "{strategy:?}");
    }
}

#[test]
fn every_form_of_a_profile_is_served_or_set_aside_and_none_costs_another_device() {
    let devices = vec![
        card_entry(0),
        mig_card(1),
        mig_entry(1, 0, "1g.10gb+me"),
        mig_entry(1, 1, "1g.24gb-me"),
        mig_entry(1, 2, "1g.24gb+gfx"),
        mig_entry(1, 3, "2g.24gb+me.all"),
        mig_entry(1, 4, "1c.3g.20gb"),
        mig_entry(1, 5, "unknown-17"),
        mig_entry(1, 6, None),
        mig_entry(1, 7, "?!"),
    ];
    insta::assert_snapshot!(told(Mig::Mixed, devices), @r"
    nvidia.com/gpu: GPU-0
    nvidia.com/mig-1c.3g.20gb: MIG-1-4
    nvidia.com/mig-1g.10gb.me: MIG-1-0
    nvidia.com/mig-1g.24gb-me: MIG-1-1
    nvidia.com/mig-1g.24gb.gfx: MIG-1-2
    nvidia.com/mig-2g.24gb.me.all: MIG-1-3
    nvidia.com/mig-unknown-17: MIG-1-5
    GPU-1 - Partitioned: it is in MIG mode and offered as its MIG devices: 6
    MIG-1-6 of mig - NoName: `nvidia.com/mig-{profile}` needs its partition profile, which it does not have or does not tell; change `resource` of pool `mig`
    MIG-1-7 of mig - NoName: `nvidia.com/mig-?!` is not an extended resource name: the part after the slash may hold letters, digits, `-`, `_` and `.`, and starts and ends with a letter or digit; change `resource` of pool `mig`
    ");
}
