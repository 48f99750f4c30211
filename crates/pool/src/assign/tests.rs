use crate::sample::{at, card, entry, lines, mig, mig_card, plan_of, pools, shared};
use config::{Method, Pool};

fn limited(limit: u32, pool: Pool) -> Pool {
    Pool {
        limit: Some(limit),
        ..pool
    }
}

#[test]
fn the_first_pool_that_matches_takes_a_device_and_the_last_may_take_none() {
    let pools = pools(vec![
        at(&["0"], Pool::all("one", "a.com/one")),
        at(&["0", "1"], Pool::all("two", "a.com/two")),
        at(&["0"], Pool::all("three", "a.com/three")),
    ]);
    insta::assert_snapshot!(lines(&plan_of(&pools, vec![card(0), card(1), card(2)])), @r"
    a.com/one: GPU-0
    a.com/two: GPU-1
    GPU-2 - NoPool: no selector of a pool matches it: add one, or exclude the device
    (pool `three` takes no device of this node)
    ");
}

#[test]
fn a_limit_leaves_the_later_indices_to_the_next_pool() {
    let shared = shared(
        Method::TimeSlicing,
        2,
        Pool::all("shared", "a.com/gpu.shared"),
    );
    let pools = pools(vec![limited(3, shared), Pool::all("rest", "a.com/gpu")]);
    // Indices compare as numbers: 2 and 9 come before 10 and 11.
    let devices = [10, 2, 11, 9].map(card).to_vec();
    insta::assert_snapshot!(lines(&plan_of(&pools, devices)), @r"
    a.com/gpu: GPU-11
    a.com/gpu.shared: GPU-10::0 GPU-10::1 GPU-2::0 GPU-2::1 GPU-9::0 GPU-9::1
    ");
}

#[test]
fn a_limit_without_a_next_pool_is_the_reason() {
    let pools = pools(vec![limited(1, Pool::all("gpu", "a.com/gpu"))]);
    insta::assert_snapshot!(lines(&plan_of(&pools, vec![card(0), card(1)])), @r"
    a.com/gpu: GPU-0
    GPU-1 of gpu - NoPool: pool `gpu` takes no more than its limit, 1, and no later pool takes it
    ");
}

#[test]
fn mig_devices_are_counted_in_their_own_order() {
    let pools = pools(vec![
        limited(2, at(&["*:*"], Pool::all("few", "a.com/few"))),
        Pool::all("rest", "a.com/rest"),
    ]);
    let devices = vec![
        mig_card(1),
        mig(1, 10, "1g.5gb"),
        mig(1, 2, "1g.5gb"),
        mig(1, 0, "1g.5gb"),
    ];
    insta::assert_snapshot!(lines(&plan_of(&pools, devices)), @r"
    a.com/few: MIG-1-0 MIG-1-2
    a.com/rest: MIG-1-10
    GPU-1 - Partitioned: it is in MIG mode and offered as its MIG devices: 3
    ");
}

#[test]
fn a_device_without_an_index_is_the_last_that_a_limit_lets_in() {
    let pools = pools(vec![
        limited(1, Pool::all("one", "a.com/one")),
        Pool::all("rest", "a.com/rest"),
    ]);
    let bare = entry(model::Device::card_of("nvidia", "A-bare", "A100"));
    insta::assert_snapshot!(lines(&plan_of(&pools, vec![bare, card(7)])), @r"
    a.com/one: GPU-7
    a.com/rest: A-bare
    ");
}

#[test]
fn a_pool_with_room_takes_all() {
    let pools = pools(vec![limited(2, Pool::all("gpu", "a.com/gpu"))]);
    insta::assert_snapshot!(lines(&plan_of(&pools, vec![card(0), card(1)])), @"a.com/gpu: GPU-0 GPU-1");
}
