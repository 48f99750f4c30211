mod arrivals;
mod known;
mod policies;
mod shared;

use std::collections::BTreeSet;

use config::{Placement, Policy, Pool, Sharing, Weights};
use proptest::prelude::*;

use super::*;
use crate::machines;

const POLICIES: [Policy; 7] = [
    Policy::Topology,
    Policy::Packed,
    Policy::Spread,
    Policy::FirstFit,
    Policy::BestFit,
    Policy::RoundRobin,
    Policy::Weighted,
];

const DISTINCT: [Distinct; 3] = [Distinct::Require, Distinct::Prefer, Distinct::Off];

fn pool(policy: Policy, distinct: Distinct) -> Pool {
    Pool {
        placement: Placement {
            policy,
            weights: Weights {
                link: 3,
                numa: 2,
                load: 2,
                temperature: 1,
                power: 1,
            },
        },
        sharing: Sharing {
            distinct,
            ..Sharing::default()
        },
        ..Pool::of_all_devices("gpu", "nvidia.com/gpu")
    }
}

/// Offer of whole cards.
fn whole(cards: Vec<model::Device>) -> Offer {
    machines::offer(cards, 1, pool(Policy::Topology, Distinct::Prefer))
}

fn ids(numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|n| machines::id(*n)).collect()
}

fn texts(ids: &[UnitId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

#[test]
fn refuses_only_what_cannot_be_met_and_says_why() {
    let offer = whole(machines::volta());
    let refusal = |available: &[usize], required: &[usize], size| {
        prefer(&offer, &ids(available), &ids(required), size)
            .unwrap_err()
            .to_string()
    };
    insta::assert_snapshot!(refusal(&[0, 1], &[], 3), @"3 of nvidia.com/gpu requested, but only 2 of them are available");
    insta::assert_snapshot!(refusal(&[0, 1], &[0, 1], 1), @"1 of nvidia.com/gpu requested, but 2 ids must be included");
    insta::assert_snapshot!(refusal(&[0, 1], &[2], 1), @"GPU-02 must be included and is not among the available nvidia.com/gpu");
}

#[test]
fn the_answer_does_not_depend_on_the_order_of_the_question() {
    let offer = whole(machines::volta());
    let mut available = ids(&[0, 1, 2, 4, 5, 7]);
    let first = prefer(&offer, &available, &[], 3).unwrap();
    for _ in 0..available.len() {
        available.rotate_left(1);
        assert_eq!(prefer(&offer, &available, &[], 3).unwrap(), first);
    }
}

#[test]
fn cards_of_which_nothing_is_known_are_still_chosen() {
    let mut cards = machines::volta();
    for card in &mut cards[2..] {
        card.links.clear();
        card.index = None;
    }
    cards[0].links.truncate(1);
    let offer = whole(cards);
    for size in 0..=8 {
        let chosen = prefer(&offer, &ids(&[0, 1, 2, 3, 4, 5, 6, 7]), &[], size).unwrap();
        assert_eq!(chosen.len(), size);
    }
    let two = prefer(&offer, &ids(&[0, 1, 4, 6]), &[], 2).unwrap();
    assert_eq!(texts(&two), ids(&[0, 1]), "what is known still counts");
}

/// A machine, its unhealthy units, and a request.
#[derive(Debug)]
struct Case {
    cards: usize,
    replicas: usize,
    sick: BTreeSet<usize>,
    silent: BTreeSet<usize>,
    available: BTreeSet<usize>,
    required: BTreeSet<usize>,
    size: usize,
    policy: Policy,
    distinct: Distinct,
}

// === impl Case ===

impl Case {
    fn offer(&self) -> Offer {
        let mut cards = machines::hgx2();
        cards.truncate(self.cards);
        for at in &self.silent {
            if let Some(card) = cards.get_mut(*at) {
                (card.links, card.numa, card.index) = (Vec::new(), None, None);
            }
        }
        let mut offer = machines::offer(cards, self.replicas, pool(self.policy, self.distinct));
        for at in &self.sick {
            if let Some(unit) = offer.units.get_mut(*at) {
                unit.healthy = false;
            }
        }
        offer
    }

    /// Id of a unit; beyond the units of the offer, an id that the offer does not list.
    fn id(offer: &Offer, at: usize) -> String {
        let unit = offer.units.get(at);
        unit.map_or_else(
            || format!("ghost-{}::{}", at / 2, at % 2),
            |unit| unit.id.to_string(),
        )
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let some = |most: usize| prop::collection::btree_set(0usize..56, 0..most);
    let shape = (1usize..=16, prop::sample::select(vec![1usize, 1, 2, 3]));
    let how = (
        prop::sample::select(POLICIES.to_vec()),
        prop::sample::select(DISTINCT.to_vec()),
    );
    (shape, some(20), some(8), some(40), some(5), 0usize..24, how).prop_map(
        |((cards, replicas), sick, silent, available, required, size, (policy, distinct))| Case {
            cards,
            replicas,
            sick,
            silent,
            required: required.intersection(&available).copied().collect(),
            available,
            size,
            policy,
            distinct,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn meets_every_request_that_can_be_met_and_refuses_the_others_with_the_reason(case in cases()) {
        let offer = case.offer();
        let name = |at: &usize| Case::id(&offer, *at);
        let available: Vec<String> = case.available.iter().map(name).collect();
        let required: Vec<String> = case.required.iter().map(name).collect();
        let card = |id: &str| id.split("::").next().unwrap_or_default().to_owned();
        let on = |ids: &[String]| ids.iter().map(|id| card(id)).collect::<BTreeSet<_>>().len();
        match prefer(&offer, &available, &required, case.size) {
            Ok(chosen) => {
                let chosen = texts(&chosen);
                let set: BTreeSet<&String> = chosen.iter().collect();
                prop_assert_eq!(set.len(), case.size);
                prop_assert!(required.iter().all(|id| set.contains(id)));
                prop_assert!(chosen.iter().all(|id| available.contains(id)));
                if case.distinct == Distinct::Require {
                    prop_assert_eq!(on(&chosen), case.size);
                }
                if case.distinct == Distinct::Prefer && case.sick.is_empty() {
                    let known: Vec<String> = available
                        .iter()
                        .filter(|id| required.contains(id) || offer.unit(id).is_some())
                        .cloned()
                        .collect();
                    let most = case.size.min(on(&required) + case.size - required.len());
                    prop_assert!(on(&chosen) >= most.min(on(&known)));
                }
                let good = |id: &&String| offer.unit(id).is_some_and(|unit| unit.healthy);
                let free = |id: &&String| !required.contains(id);
                let bad = chosen.iter().filter(free).filter(|id| !good(id)).count();
                if case.distinct != Distinct::Require {
                    let healthy = available.iter().filter(free).filter(good).count();
                    prop_assert_eq!(bad, (case.size - required.len()).saturating_sub(healthy));
                }
            }
            Err(Error::TooFew { .. }) => prop_assert!(available.len() < case.size),
            Err(Error::TooManyRequired { .. }) => prop_assert!(required.len() > case.size),
            Err(Error::TooFewCards { cards, .. }) => {
                prop_assert!(case.distinct == Distinct::Require && cards < case.size);
                prop_assert_eq!(cards, on(&available));
            }
            Err(Error::RequiredTogether { first, second, .. }) => {
                prop_assert_eq!(card(&first), card(&second));
            }
            Err(error @ Error::RequiredNotAvailable { .. }) => prop_assert!(false, "{}", error),
        }
    }
}
