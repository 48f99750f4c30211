//! Several units on one card: replicas and partitions.

use model::{Device, Kind};
use rstest::rstest;

use super::*;

/// Offer of cards with eight replicas each, and the ids of the last `free` replicas of each card.
fn cards(policy: Policy, distinct: Distinct, free: &[usize]) -> (Offer, Vec<String>) {
    let mut machine = machines::hgx2();
    machine.truncate(free.len());
    let offer = machines::offer(machine, 8, pool(policy, distinct));
    let open = |(n, free): (usize, &usize)| {
        (8 - free..8).map(move |r| format!("{}::{r}", machines::id(n)))
    };
    let available = free.iter().enumerate().flat_map(open).collect();
    (offer, available)
}

/// Returns the number of chosen units on each card.
fn counts(chosen: &[UnitId], cards: usize) -> Vec<usize> {
    let on = |n: usize| {
        chosen
            .iter()
            .filter(move |id| id.as_str().starts_with(&machines::id(n)))
    };
    (0..cards).map(|n| on(n).count()).collect()
}

#[rstest]
fn different_cards_are_had_where_they_are_wanted(
    #[values(0, 1, 2, 3, 4, 5, 6)] policy: usize,
    #[values(Distinct::Require, Distinct::Prefer)] distinct: Distinct,
) {
    let (offer, available) = cards(POLICIES[policy], distinct, &[3, 5]);
    let chosen = prefer(&offer, &available, &[], 2).unwrap();
    assert_eq!(counts(&chosen, 2), [1, 1]);
    let must = vec!["GPU-00::5".to_owned()];
    let chosen = prefer(&offer, &available, &must, 2).unwrap();
    assert_eq!(counts(&chosen, 2), [1, 1]);
}

#[test]
fn where_different_cards_are_a_must_anything_else_is_refused_with_the_reason() {
    let (offer, available) = cards(Policy::Spread, Distinct::Require, &[3, 5]);
    let error = prefer(&offer, &available, &[], 3).unwrap_err();
    insta::assert_snapshot!(error, @"3 of nvidia.com/gpu requested, but only 2 different cards have some available, and the pool `gpu` has `distinct: require`; ask for 2 at most, or set `distinct: prefer`");
    let must = ["GPU-01::4", "GPU-01::6"].map(str::to_owned);
    let error = prefer(&offer, &available, &must, 2).unwrap_err();
    insta::assert_snapshot!(error, @"GPU-01::4 and GPU-01::6 must be included and are on one card, but the pool `gpu` of nvidia.com/gpu has `distinct: require`; set `distinct: prefer` to allow that");
}

#[test]
fn where_different_cards_are_a_wish_the_rest_is_divided_evenly() {
    let (offer, available) = cards(Policy::Topology, Distinct::Prefer, &[8, 8, 8]);
    let chosen = prefer(&offer, &available, &[], 7).unwrap();
    assert_eq!(counts(&chosen, 3), [3, 2, 2]);
}

#[test]
fn topology_takes_close_cards_and_of_equal_ones_the_emptiest() {
    let (offer, available) = cards(
        Policy::Topology,
        Distinct::Prefer,
        &[8, 8, 8, 8, 8, 8, 8, 8],
    );
    let chosen = prefer(&offer, &available, &[], 4).unwrap();
    assert_eq!(counts(&chosen, 8), [1, 1, 1, 1, 0, 0, 0, 0]);
    let (offer, available) = cards(
        Policy::Topology,
        Distinct::Prefer,
        &[7, 7, 7, 7, 8, 8, 8, 8],
    );
    let chosen = prefer(&offer, &available, &[], 4).unwrap();
    assert_eq!(counts(&chosen, 8), [0, 0, 0, 0, 1, 1, 1, 1]);
}

#[rstest]
#[case::one_card_that_holds_all(&[8, 3, 8, 8], &[], 3, &[0, 3, 0, 0])]
#[case::the_largest_and_its_neighbour(&[4, 3, 8, 4], &[], 12, &[0, 0, 8, 4])]
#[case::the_card_that_is_in_already(&[8, 3, 8, 8], &["GPU-02::7"], 3, &[0, 0, 3, 0])]
fn topology_stays_on_few_close_cards_where_different_ones_do_not_matter(
    #[case] free: &[usize],
    #[case] must: &[&str],
    #[case] size: usize,
    #[case] expected: &[usize],
) {
    let (offer, available) = cards(Policy::Topology, Distinct::Off, free);
    let must: Vec<String> = must.iter().map(|id| (*id).to_owned()).collect();
    let chosen = prefer(&offer, &available, &must, size).unwrap();
    assert_eq!(counts(&chosen, free.len()), expected);
}

#[test]
fn replicas_are_taken_in_the_order_of_their_numbers() {
    let mut machine = machines::hgx2();
    machine.truncate(1);
    let offer = machines::offer(machine, 12, pool(Policy::FirstFit, Distinct::Off));
    let available: Vec<String> = [10, 2, 11, 9].map(|r| format!("GPU-00::{r}")).into();
    let chosen = prefer(&offer, &available, &[], 2).unwrap();
    assert_eq!(texts(&chosen), ["GPU-00::2", "GPU-00::9"]);
}

/// Two cards with four partitions each.
fn partitions(policy: Policy, distinct: Distinct) -> Offer {
    let mut devices = machines::volta();
    devices.truncate(2);
    for card in 0..2u32 {
        for part in 0..4u32 {
            let parent = machines::id(card as usize);
            let kind = Kind::Partition {
                parent: parent.as_str().into(),
                profile: Some("1g.5gb".to_owned()),
            };
            // The ids must not reveal the card, as MIG UUIDs do not.
            let id = format!("MIG-{}", (card + 2 * part) * 7 % 8);
            devices.push(Device {
                kind,
                index: format!("{card}:{part}").parse().ok(),
                ..Device::card_of("nvidia", id, "A100")
            });
        }
    }
    let mut offer = machines::offer(devices, 1, pool(policy, distinct));
    offer
        .units
        .retain(|unit| unit.id.as_str().starts_with("MIG"));
    offer
}

#[rstest]
#[case(Policy::Spread, Distinct::Off, 4, &[2, 2])]
#[case(Policy::Packed, Distinct::Off, 4, &[4, 0])]
#[case(Policy::BestFit, Distinct::Off, 3, &[3, 0])]
#[case(Policy::Packed, Distinct::Prefer, 2, &[1, 1])]
#[case(Policy::Topology, Distinct::Require, 2, &[1, 1])]
fn partitions_belong_to_their_cards(
    #[case] policy: Policy,
    #[case] distinct: Distinct,
    #[case] size: usize,
    #[case] expected: &[usize],
) {
    let offer = partitions(policy, distinct);
    let available: Vec<String> = offer.units.iter().map(|u| u.id.to_string()).collect();
    let chosen = prefer(&offer, &available, &[], size).unwrap();
    let card = |id: &UnitId| {
        let entry = offer
            .entry_of_unit(offer.unit(id.as_str()).unwrap())
            .unwrap();
        entry.device.card_id().to_string()
    };
    let on = |n: usize| {
        chosen
            .iter()
            .filter(|id| card(id) == machines::id(n))
            .count()
    };
    assert_eq!([on(0), on(1)], expected);
}
