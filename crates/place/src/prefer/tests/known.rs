//! Known answers: those of NVIDIA's plugin, from its own tests and those of go-gpuallocator 0.6.0.

use rstest::rstest;

use super::*;

#[rstest]
#[case(&[0, 2, 4, 5], &[], 2, &[4, 5])]
#[case(&[0, 4, 5, 6], &[], 2, &[5, 6])]
#[case(&[0, 3, 1], &[], 2, &[0, 3])]
#[case(&[0, 1, 4], &[], 2, &[0, 4])]
#[case(&[0, 1, 2, 3, 4, 5, 6, 7], &[4], 1, &[4])]
#[case(&[0, 1, 2, 3, 4, 5, 6, 7], &[4], 2, &[4, 7])]
#[case(&[0, 1, 2, 3, 4, 5, 6, 7], &[4], 4, &[4, 5, 6, 7])]
#[case(&[0, 1, 2, 3, 4, 5, 6, 7], &[0, 2, 4, 6], 4, &[0, 2, 4, 6])]
#[case(&[0, 1, 2, 3, 4, 5, 6, 7], &[], 8, &[0, 1, 2, 3, 4, 5, 6, 7])]
#[case(&[3], &[], 0, &[])]
fn a_dgx1_gives_the_known_sets(
    #[case] available: &[usize],
    #[case] required: &[usize],
    #[case] size: usize,
    #[case] expected: &[usize],
) {
    let offer = whole(machines::volta());
    let chosen = prefer(&offer, &ids(available), &ids(required), size).unwrap();
    assert_eq!(texts(&chosen), ids(expected));
}

#[rstest]
#[case::rtx8000(machines::rtx8000(), 2, "0,3 1,2")]
#[case::rtx8000(machines::rtx8000(), 4, "0,1,2,3")]
#[case::pascal(machines::pascal(), 2, "0,2 1,3 4,6 5,7")]
#[case::pascal(machines::pascal(), 4, "0,1,2,3 4,5,6,7")]
#[case::pascal(machines::pascal(), 8, "0,1,2,3,4,5,6,7")]
#[case::volta(machines::volta(), 2, "0,3 1,2 4,7 5,6")]
#[case::volta(machines::volta(), 4, "0,1,2,3 4,5,6,7")]
#[case::volta(machines::volta(), 8, "0,1,2,3,4,5,6,7")]
fn one_request_after_the_other_gives_the_known_sets(
    #[case] cards: Vec<model::Device>,
    #[case] size: usize,
    #[case] expected: &str,
) {
    let offer = whole(cards);
    let mut free: Vec<String> = offer.units.iter().map(|u| u.id.to_string()).collect();
    for set in expected.split(' ') {
        let set: Vec<usize> = set.split(',').map(|n| n.parse().unwrap()).collect();
        let chosen = texts(&prefer(&offer, &free, &[], size).unwrap());
        assert_eq!(chosen, ids(&set));
        free.retain(|id| !chosen.contains(id));
    }
    let refused = prefer(&offer, &free, &[], size).unwrap_err();
    assert!(matches!(refused, Error::TooFew { .. }), "{refused}");
}

#[test]
fn on_a_switch_every_pair_counts_and_the_way_through_the_machine_decides() {
    let offer = whole(machines::hgx2());
    let mut free: Vec<String> = offer.units.iter().map(|u| u.id.to_string()).collect();
    let mut take = |size: usize| {
        let chosen = texts(&prefer(&offer, &free, &[], size).unwrap());
        free.retain(|id| !chosen.contains(id));
        chosen
    };
    assert_eq!(take(2), ids(&[0, 1]));
    assert_eq!(
        take(8),
        ids(&[8, 9, 10, 11, 12, 13, 14, 15]),
        "the board that is whole"
    );
    assert_eq!(take(1), ids(&[2]), "the four that is not");
    assert_eq!(take(4), ids(&[4, 5, 6, 7]));
    assert_eq!(take(1), ids(&[3]));
}

/// Test rows of NVIDIA's plugin for shared cards: `replicas` units on each of `cards` cards, of
/// which `used` are in use. Expects the numbers of chosen units on each card, the highest first.
#[rstest]
#[case(Policy::Spread, 2, 4, &[], 2, &[1, 1])]
#[case(Policy::Spread, 3, 2, &[], 3, &[1, 1, 1])]
#[case(Policy::Spread, 2, 4, &[], 4, &[2, 2])]
#[case(Policy::Spread, 1, 4, &[], 1, &[1])]
#[case(Policy::Spread, 3, 4, &[], 3, &[1, 1, 1])]
#[case(Policy::Spread, 2, 2, &["GPU-01::0"], 2, &[1, 1])]
#[case(Policy::Spread, 2, 4, &["GPU-00::0", "GPU-00::1", "GPU-00::2", "GPU-00::3"], 2, &[2])]
#[case(Policy::Packed, 2, 4, &[], 2, &[2])]
#[case(Policy::Packed, 3, 2, &[], 3, &[2, 1])]
#[case(Policy::Packed, 2, 4, &[], 4, &[4])]
#[case(Policy::Packed, 2, 4, &[], 5, &[4, 1])]
#[case(Policy::Packed, 1, 4, &[], 1, &[1])]
fn shared_cards_are_filled_as_known(
    #[case] policy: Policy,
    #[case] cards: usize,
    #[case] replicas: usize,
    #[case] used: &[&str],
    #[case] size: usize,
    #[case] expected: &[usize],
) {
    let mut machine = machines::hgx2();
    machine.truncate(cards);
    let offer = machines::offer(machine, replicas, pool(policy, Distinct::Off));
    let all = offer.units.iter().map(|u| u.id.to_string());
    let free: Vec<String> = all.filter(|id| !used.contains(&id.as_str())).collect();
    let chosen = texts(&prefer(&offer, &free, &[], size).unwrap());
    let on = |n: usize| {
        chosen
            .iter()
            .filter(|id| id.starts_with(&machines::id(n)))
            .count()
    };
    let mut counts: Vec<usize> = (0..cards).map(on).filter(|count| *count > 0).collect();
    counts.sort_by(|a, b| b.cmp(a));
    assert_eq!(counts, expected);
}

/// With three of four units in use on one card and one on the other, the policy decides the card of
/// one more unit. Equal numbers in use rank equal, whatever the totals.
#[rstest]
#[case(Policy::Spread, &[3, 1], 1)]
#[case(Policy::Packed, &[3, 1], 0)]
#[case(Policy::Spread, &[2, 2], 0)]
#[case(Policy::Packed, &[2, 2], 0)]
fn cards_rank_by_what_is_in_use_alone(
    #[case] policy: Policy,
    #[case] used: &[usize],
    #[case] card: usize,
) {
    let mut machine = machines::hgx2();
    machine.truncate(2);
    let offer = machines::offer(machine, 4, pool(policy, Distinct::Off));
    let open = |n: usize| (used[n]..4).map(move |r| format!("{}::{r}", machines::id(n)));
    let free: Vec<String> = (0..2).flat_map(open).collect();
    let chosen = texts(&prefer(&offer, &free, &[], 1).unwrap());
    assert!(chosen[0].starts_with(&machines::id(card)), "{chosen:?}");
}
