//! Policy `topology`: takes the best connected cards, and leaves the others as well connected as
//! possible.

use super::{DistinctCards, PolicyInput, greedy};
use crate::search;

/// Chooses different cards if there are enough and units may not share a card. Otherwise chooses
/// few cards that are close to each other (`distinct: off`), or takes from all cards evenly.
pub(super) fn choose_connected(ask: &PolicyInput<'_, '_>) -> Vec<usize> {
    match (ask.different(), ask.distinct) {
        (Some(different), _) => choose_distinct(ask, &different),
        (None, config::Distinct::Off) => choose_close(ask),
        (None, _) => greedy::choose_greedy(ask, greedy::spread),
    }
}

fn choose_distinct(
    ask: &PolicyInput<'_, '_>,
    DistinctCards { all, required }: &DistinctCards,
) -> Vec<usize> {
    let open = |nth: &usize| !required.contains(nth);
    if all.len() > search::MOST {
        let first = (0..all.len()).filter(open).take(ask.count);
        return ask.one_of_each(first.map(|nth| all[nth]));
    }
    let matrix = ask.cards.matrix_of_cards(all, ask.vendors);
    let set = search::find_best_set(&matrix, required, required.len() + ask.count);
    let chosen = set.into_iter().filter(open);
    ask.one_of_each(chosen.map(|nth| all[nth]))
}

/// Takes card by card: first cards that the request uses already, then cards that hold all missing
/// units. Of several cards the closest to the used ones comes first, then the one with the fewest
/// units to spare.
fn choose_close(ask: &PolicyInput<'_, '_>) -> Vec<usize> {
    let cards = &ask.cards.0;
    let scores = ask.score_all_cards();
    let mut counts = vec![0; cards.len()];
    let mut missing = ask.count;
    while missing > 0 {
        let taken = |at: &usize| counts[*at] > 0 || !cards[*at].required.is_empty();
        let open = (0..cards.len()).filter(|at| cards[*at].free.len() > counts[*at]);
        let key = |at: &usize| {
            let free = cards[*at].free.len() - counts[*at];
            let closeness = scores.as_ref().map_or(0, |scores| {
                let others = (0..cards.len()).filter(|other| other != at && taken(other));
                others
                    .map(|other| u64::from(scores.score_of_pair(*at, other)))
                    .sum()
            });
            let fits = free >= missing;
            let waste = if fits { free } else { usize::MAX - free };
            (!taken(at), !fits, u64::MAX - closeness, waste, *at)
        };
        let Some(next) = open.min_by_key(key) else {
            break;
        };
        let count = missing.min(cards[next].free.len() - counts[next]);
        counts[next] += count;
        missing -= count;
    }
    counts
}
