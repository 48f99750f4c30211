//! Placement policies: the number of units to take from each card.

mod greedy;
mod topology;
mod weighted;

use config::{Distinct, Placement, Policy};
use model::Samples;

use rules::Vendors;

use crate::{GrantHistory, Matrix, cards::RequestCards, search::MOST};

/// Input of the policies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyInput<'a, 'ids> {
    /// Cards with their free units.
    pub(crate) cards: &'a RequestCards<'ids>,
    /// Number of units to take. The cards have at least as many, on different cards if `distinct`
    /// is `Require`.
    pub(crate) count: usize,
    /// Rule for units on one card: different cards are required, preferred, or do not matter.
    pub(crate) distinct: Distinct,
    /// Grants so far.
    pub(crate) clock: &'a GrantHistory,
    /// Newest samples.
    pub(crate) samples: &'a Samples,
    /// Vendors, for the pair scores.
    pub(crate) vendors: Vendors,
}

/// Returns the number of units to take from each card, by position.
pub(crate) fn choose_counts(placement: &Placement, ask: &PolicyInput<'_, '_>) -> Vec<usize> {
    if ask.count == 0 {
        return vec![0; ask.cards.0.len()];
    }
    match placement.policy {
        Policy::Topology => topology::choose_connected(ask),
        Policy::Weighted => weighted::choose_weighted(&placement.weights, ask),
        Policy::Packed => greedy::choose_greedy(ask, greedy::packed),
        Policy::Spread => greedy::choose_greedy(ask, greedy::spread),
        Policy::FirstFit => greedy::choose_greedy(ask, greedy::first_fit),
        Policy::BestFit => greedy::choose_greedy(ask, greedy::best_fit),
        Policy::RoundRobin => greedy::choose_greedy(ask, greedy::round_robin),
    }
}

// === impl PolicyInput ===

impl PolicyInput<'_, '_> {
    /// Returns the pair scores of all cards; `None` beyond [`MOST`] cards, where a matrix would
    /// cost too much.
    fn score_all_cards(&self) -> Option<Matrix> {
        let all: Vec<usize> = (0..self.cards.0.len()).collect();
        (all.len() <= MOST).then(|| self.cards.matrix_of_cards(&all, self.vendors))
    }

    /// Returns the cards to choose from if each chosen unit is to be on a card of its own: cards
    /// with required ids, and cards with free units. `None` if there are too few such cards, or if
    /// units may share a card.
    fn different(&self) -> Option<DistinctCards> {
        if self.distinct == Distinct::Off && self.cards.has_shared_card() {
            return None;
        }
        let cards = &self.cards.0;
        let must = |at: usize| !cards[at].required.is_empty();
        let open = |at: &usize| must(*at) || !cards[*at].free.is_empty();
        let mut all: Vec<usize> = (0..cards.len()).filter(open).collect();
        // Of cards with equal scores the emptiest comes first, so that shared cards fill evenly.
        all.sort_by_key(|at| {
            cards[*at]
                .allocated_units()
                .saturating_sub(cards[*at].required.len())
        });
        let required: Vec<usize> = (0..all.len()).filter(|nth| must(all[*nth])).collect();
        (all.len() - required.len() >= self.count).then_some(DistinctCards { all, required })
    }

    /// Takes one unit of each of these cards.
    fn one_of_each(&self, cards: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut counts = vec![0; self.cards.0.len()];
        for at in cards {
            counts[at] = 1;
        }
        counts
    }
}

/// Cards to choose from, each for at most one unit.
struct DistinctCards {
    /// Positions of the cards. The search takes the first of equal cards.
    all: Vec<usize>,
    /// Indices into `all` of cards with a required id. They are among the chosen cards, but no unit
    /// is taken from them.
    required: Vec<usize>,
}
