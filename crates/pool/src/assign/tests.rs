use crate::sample::{
    card_entry, config_with_pools, healthy_entry, mig_card, mig_entry, plan_of, pool_of_indices,
    shared_pool, show_plan,
};
use config::{Method, Pool};

fn limited(limit: u32, pool: Pool) -> Pool {
    Pool {
        limit: Some(limit),
        ..pool
    }
}

#[test]
fn the_first_pool_that_matches_takes_a_device_and_the_last_may_take_none() {
    let pools = config_with_pools(vec![
        pool_of_indices(&["0"], Pool::of_all_devices("one", "a.com/one")),
        pool_of_indices(&["0", "1"], Pool::of_all_devices("two", "a.com/two")),
        pool_of_indices(&["0"], Pool::of_all_devices("three", "a.com/three")),
    ]);
    insta::assert_snapshot!(show_plan(&plan_of(&pools, vec![card_entry(0), card_entry(1), card_entry(2)])), @r"
    a.com/one: GPU-0
    a.com/two: GPU-1
    GPU-2 - NoPool: no selector of a pool matches it: add one, or exclude the device
    (pool `three` takes no device of this node)
    ");
}

#[test]
fn a_limit_leaves_the_later_indices_to_the_next_pool() {
    let shared = shared_pool(
        Method::TimeSlicing,
        2,
        Pool::of_all_devices("shared", "a.com/gpu.shared"),
    );
    let pools = config_with_pools(vec![
        limited(3, shared),
        Pool::of_all_devices("rest", "a.com/gpu"),
    ]);
    // Indices compare as numbers: 2 and 9 come before 10 and 11.
    let devices = [10, 2, 11, 9].map(card_entry).to_vec();
    insta::assert_snapshot!(show_plan(&plan_of(&pools, devices)), @r"
    a.com/gpu: GPU-11
    a.com/gpu.shared: GPU-10::0 GPU-10::1 GPU-2::0 GPU-2::1 GPU-9::0 GPU-9::1
    ");
}

#[test]
fn a_limit_without_a_next_pool_is_the_reason() {
    let pools = config_with_pools(vec![limited(1, Pool::of_all_devices("gpu", "a.com/gpu"))]);
    insta::assert_snapshot!(show_plan(&plan_of(&pools, vec![card_entry(0), card_entry(1)])), @r"
    a.com/gpu: GPU-0
    GPU-1 of gpu - NoPool: pool `gpu` takes no more than its limit, 1, and no later pool takes it
    ");
}

#[test]
fn mig_devices_are_counted_in_their_own_order() {
    let pools = config_with_pools(vec![
        limited(
            2,
            pool_of_indices(&["*:*"], Pool::of_all_devices("few", "a.com/few")),
        ),
        Pool::of_all_devices("rest", "a.com/rest"),
    ]);
    let devices = vec![
        mig_card(1),
        mig_entry(1, 10, "1g.5gb"),
        mig_entry(1, 2, "1g.5gb"),
        mig_entry(1, 0, "1g.5gb"),
    ];
    insta::assert_snapshot!(show_plan(&plan_of(&pools, devices)), @r"
    a.com/few: MIG-1-0 MIG-1-2
    a.com/rest: MIG-1-10
    GPU-1 - Partitioned: it is in MIG mode and offered as its MIG devices: 3
    ");
}

#[test]
fn a_device_without_an_index_is_the_last_that_a_limit_lets_in() {
    let pools = config_with_pools(vec![
        limited(1, Pool::of_all_devices("one", "a.com/one")),
        Pool::of_all_devices("rest", "a.com/rest"),
    ]);
    let bare = healthy_entry(model::Device::card_of("nvidia", "A-bare", "A100"));
    insta::assert_snapshot!(show_plan(&plan_of(&pools, vec![bare, card_entry(7)])), @r"
    a.com/one: GPU-7
    a.com/rest: A-bare
    ");
}

#[test]
fn a_pool_with_room_takes_all() {
    let pools = config_with_pools(vec![limited(2, Pool::of_all_devices("gpu", "a.com/gpu"))]);
    insta::assert_snapshot!(show_plan(&plan_of(&pools, vec![card_entry(0), card_entry(1)])), @"a.com/gpu: GPU-0 GPU-1");
}
