//! The policies other than `topology`, each by its distinctive answers.

use std::sync::Arc;

use model::{DeviceId, Samples, Telemetry};
use rstest::rstest;

use super::*;

/// Chooses `size` units of cards with eight replicas each, of which `free` are available. Returns
/// the number of chosen units on each card.
fn chosen(policy: Policy, free: &[usize], size: usize, clock: &GrantHistory) -> Vec<usize> {
    let mut machine = machines::hgx2();
    machine.truncate(free.len());
    let offer = machines::offer(machine, 8, pool(policy, Distinct::Off));
    let open = |(n, free): (usize, &usize)| {
        (8 - free..8).map(move |r| format!("{}::{r}", machines::id(n)))
    };
    let available: Vec<String> = free.iter().enumerate().flat_map(open).collect();
    let request = PreferRequest {
        available: &available,
        required: &[],
        size,
        clock,
        samples: &Samples::default(),
    };
    let ids = texts(&prefer_at(&offer, &request).unwrap());
    let on = |n: usize| {
        ids.iter()
            .filter(|id| id.starts_with(&machines::id(n)))
            .count()
    };
    (0..free.len()).map(on).collect()
}

#[rstest]
#[case::the_fullest_that_fits(&[8, 2, 3, 5], 3, &[0, 0, 3, 0])]
#[case::else_the_largest_first(&[6, 2, 3, 5], 9, &[6, 0, 3, 0])]
fn best_fit_takes(#[case] free: &[usize], #[case] size: usize, #[case] expected: &[usize]) {
    let clock = GrantHistory::default();
    assert_eq!(chosen(Policy::BestFit, free, size, &clock), expected);
}

#[test]
fn first_fit_goes_by_the_cards_order() {
    let clock = GrantHistory::default();
    assert_eq!(chosen(Policy::FirstFit, &[2, 8, 8], 4, &clock), [2, 2, 0]);
}

#[test]
fn packed_begins_the_smallest_new_card_that_holds_the_rest() {
    let clock = GrantHistory::default();
    assert_eq!(chosen(Policy::Packed, &[8, 2, 8], 4, &clock), [2, 2, 0]);
}

#[test]
fn round_robin_goes_round() {
    let mut clock = GrantHistory::default();
    let mut order = Vec::new();
    for _ in 0..7 {
        let counts = chosen(Policy::RoundRobin, &[8, 8, 8], 1, &clock);
        let card = counts.iter().position(|count| *count == 1).unwrap();
        clock.record_grant([&DeviceId::new(machines::id(card))]);
        order.push(card);
    }
    assert_eq!(order, [0, 1, 2, 0, 1, 2, 0]);
    clock.record_grant([
        &DeviceId::new(machines::id(1)),
        &DeviceId::new(machines::id(2)),
    ]);
    assert_eq!(chosen(Policy::RoundRobin, &[8, 8, 8], 2, &clock), [1, 1, 0]);
}

/// Chooses `size` of four DGX-1 cards with these temperatures and powers by these weights.
fn weighed(weights: Weights, samples: [Option<(u32, u32)>; 4], size: usize) -> Vec<String> {
    let mut machine = machines::volta();
    machine.truncate(4);
    let mut offer = machines::offer(machine, 1, Pool::of_all_devices("gpu", "nvidia.com/gpu"));
    offer.pool = Arc::new(Pool {
        placement: Placement {
            policy: Policy::Weighted,
            weights,
        },
        ..Pool::of_all_devices("gpu", "nvidia.com/gpu")
    });
    let mut newest = Samples::default();
    for (entry, sample) in offer.snapshot.devices.iter().zip(samples) {
        if let Some((celsius, watts)) = sample {
            let telemetry = Telemetry {
                temperature_celsius: Some(celsius),
                power_milliwatts: Some(watts * 1000),
                ..Telemetry::default()
            };
            newest.insert(&entry.device.id, telemetry);
        }
    }
    let request = PreferRequest {
        available: &ids(&[0, 1, 2, 3]),
        required: &[],
        size,
        clock: &GrantHistory::default(),
        samples: &newest,
    };
    texts(&prefer_at(&offer, &request).unwrap())
}

const WARM: [Option<(u32, u32)>; 4] = [
    Some((80, 300)),
    Some((40, 90)),
    Some((70, 60)),
    Some((41, 200)),
];

#[rstest]
#[case::nothing_counts(Weights::default(), WARM, 2, &[0, 1])]
#[case::links(Weights { link: 1, ..Weights::default() }, WARM, 2, &[2, 3])]
#[case::cool_cards(Weights { temperature: 1, ..Weights::default() }, WARM, 2, &[1, 3])]
#[case::frugal_cards(Weights { power: 1, ..Weights::default() }, WARM, 2, &[1, 2])]
#[case::links_beside_heat(Weights { link: 1, temperature: 9, ..Weights::default() }, WARM, 2, &[1, 3])]
#[case::heat_beside_links(Weights { link: 9, temperature: 1, ..Weights::default() }, WARM, 2, &[2, 3])]
#[case::one_cool_card(Weights { link: 9, temperature: 1, ..Weights::default() }, WARM, 1, &[1])]
#[case::what_is_not_known_is_not_cool(
    Weights { temperature: 1, ..Weights::default() }, [None, Some((95, 1)), None, Some((99, 1))], 2, &[1, 3]
)]
fn weights_decide(
    #[case] weights: Weights,
    #[case] samples: [Option<(u32, u32)>; 4],
    #[case] size: usize,
    #[case] expected: &[usize],
) {
    assert_eq!(weighed(weights, samples, size), ids(expected));
}

#[test]
fn the_highest_weights_there_are_do_not_overflow() {
    let most = Weights {
        link: u32::MAX,
        numa: u32::MAX,
        load: u32::MAX,
        temperature: u32::MAX,
        power: u32::MAX,
    };
    assert_eq!(weighed(most, WARM, 3).len(), 3);
}
