//! The policies: how many units to take from each card.

mod greedy;
mod topology;
mod weighted;

use config::{Distinct, Placement, Policy};
use model::Samples;

use rules::Vendors;

use crate::{Clock, Matrix, cards::Cards, search::MOST};

/// What the policies choose from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a, 'ids> {
    /// The cards with what is free on each.
    pub(crate) cards: &'a Cards<'ids>,
    /// How many units are to be taken; they are there, on different cards if those are a must.
    pub(crate) count: usize,
    /// Whether the units must be on different cards.
    pub(crate) distinct: Distinct,
    /// When cards were granted last.
    pub(crate) clock: &'a Clock,
    /// The newest samples.
    pub(crate) samples: &'a Samples,
    /// The vendors, for the pair scores.
    pub(crate) vendors: Vendors,
}

/// How many units to take from each card, by position.
pub(crate) fn choose(placement: &Placement, ask: &Ask<'_, '_>) -> Vec<usize> {
    if ask.count == 0 {
        return vec![0; ask.cards.0.len()];
    }
    match placement.policy {
        Policy::Topology => topology::choose(ask),
        Policy::Weighted => weighted::choose(&placement.weights, ask),
        Policy::Packed => greedy::choose(ask, greedy::packed),
        Policy::Spread => greedy::choose(ask, greedy::spread),
        Policy::FirstFit => greedy::choose(ask, greedy::first_fit),
        Policy::BestFit => greedy::choose(ask, greedy::best_fit),
        Policy::RoundRobin => greedy::choose(ask, greedy::round_robin),
    }
}

// === impl Ask ===

impl Ask<'_, '_> {
    /// The pair scores of all cards; of very many, none.
    fn scores(&self) -> Option<Matrix> {
        let all: Vec<usize> = (0..self.cards.0.len()).collect();
        (all.len() <= MOST).then(|| self.cards.matrix(&all, self.vendors))
    }

    /// The cards to choose from where the chosen ones are to differ: those of required ids, and those
    /// with something free. `None` if they are too few, or if it does not matter.
    fn different(&self) -> Option<Different> {
        if self.distinct == Distinct::Off && self.cards.shared() {
            return None;
        }
        let cards = &self.cards.0;
        let must = |at: usize| !cards[at].required.is_empty();
        let open = |at: &usize| must(*at) || !cards[*at].free.is_empty();
        let mut all: Vec<usize> = (0..cards.len()).filter(open).collect();
        // Of equally good cards the emptiest, so that shared ones fill evenly.
        all.sort_by_key(|at| {
            cards[*at]
                .allocated()
                .saturating_sub(cards[*at].required.len())
        });
        let required: Vec<usize> = (0..all.len()).filter(|nth| must(all[*nth])).collect();
        (all.len() - required.len() >= self.count).then_some(Different { all, required })
    }

    /// One unit of each of some cards.
    fn one_of_each(&self, cards: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut counts = vec![0; self.cards.0.len()];
        for at in cards {
            counts[at] = 1;
        }
        counts
    }
}

/// Cards to choose from.
struct Different {
    /// Their positions, the first of equally good ones first.
    all: Vec<usize>,
    /// Which of these must be among the chosen, without anything to take from them.
    required: Vec<usize>,
}
