//! Policy `weighted`: weights of the user for links and NUMA nodes of pairs, and for load,
//! temperature and power of cards. Each part is a number from 0 to 1000 before its weight is
//! applied; an unknown fact is 0. The score of a set is the mean over its pairs plus the mean over
//! its cards.

use config::Weights;
use model::Telemetry;

use super::{DistinctCards, PolicyInput};
use crate::{CardConnection, EXACT, Matrix, cards::RequestCard};

/// Highest value of a part, before its weight.
const FULL: u64 = 1000;

/// Score of each card and of each pair of cards, by position.
struct WeightedScores {
    cards: Vec<u64>,
    pairs: Vec<Vec<u64>>,
}

/// Chooses the set with the highest score. The answer is exact for at most 16 different cards;
/// otherwise the set is built one unit at a time.
pub(super) fn choose_weighted(weights: &Weights, ask: &PolicyInput<'_, '_>) -> Vec<usize> {
    let worth = WeightedScores::new(weights, ask);
    match ask.different() {
        Some(different) if different.all.len() <= EXACT => {
            let chosen = worth.highest(&different, ask.count);
            ask.one_of_each(chosen)
        }
        _ => worth.add_units(ask),
    }
}

// === impl WeightedScores ===

impl WeightedScores {
    fn new(weights: &Weights, ask: &PolicyInput<'_, '_>) -> Self {
        let cards = &ask.cards.0;
        let hottest = cards.iter().filter_map(|card| card_power(card, ask)).max();
        let pairs = ask.score_all_cards().map_or_else(Vec::new, |links| {
            let all = || 0..cards.len();
            let best = all().flat_map(|at| links.row_scores(at)).max().copied();
            let of = |a: usize| all().map(move |b| (a, b));
            let row = |a: usize| of(a).map(|pair| two(weights, ask, (&links, best), pair));
            all().map(|a| row(a).collect()).collect()
        });
        Self {
            cards: cards
                .iter()
                .map(|card| score_card(weights, ask, card, hottest))
                .collect(),
            pairs,
        }
    }

    /// Returns the score of a pair; 0 beyond [`crate::search::MOST`] cards.
    fn pair_score(&self, a: usize, b: usize) -> u64 {
        self.pairs.get(a).map_or(0, |row| row[b])
    }

    /// Returns what a card adds to a set that will have `size` cards. Each card counts as much as
    /// all its pairs together, so that the order of sets is the order of their means.
    fn card_gain(&self, at: usize, others: &[usize], size: usize) -> u64 {
        let pairs: u64 = others.iter().map(|other| self.pair_score(at, *other)).sum();
        // Sums saturate: no weight may cause a panic, which would reject a pod.
        let weight = u64::try_from(size.saturating_sub(1).max(1)).unwrap_or(u64::MAX);
        pairs
            .saturating_mul(2)
            .saturating_add(self.cards[at].saturating_mul(weight))
    }

    /// Returns the set with the highest score; of equal sets the first. Tries every set.
    fn highest(&self, DistinctCards { all, required }: &DistinctCards, count: usize) -> Vec<usize> {
        let mut set: Vec<usize> = required.iter().map(|nth| all[*nth]).collect();
        let open: Vec<usize> = all.iter().copied().filter(|at| !set.contains(at)).collect();
        let must = set.len();
        let mut best = (None, Vec::new());
        self.extend(&open, &mut set, (must + count, 0), &mut best);
        best.1.split_off(must)
    }

    fn extend(
        &self,
        open: &[usize],
        set: &mut Vec<usize>,
        (size, value): (usize, u64),
        best: &mut (Option<u64>, Vec<usize>),
    ) {
        if set.len() == size {
            if Some(value) > best.0 {
                *best = (Some(value), set.clone());
            }
            return;
        }
        let missing = size - set.len();
        for at in 0..(open.len() + 1).saturating_sub(missing) {
            let value = value.saturating_add(self.card_gain(open[at], set, size));
            set.push(open[at]);
            self.extend(&open[at + 1..], set, (size, value), best);
            set.pop();
        }
    }

    /// Adds the unit with the highest gain until there are enough. Two units of one card count as
    /// the best possible pair.
    fn add_units(&self, ask: &PolicyInput<'_, '_>) -> Vec<usize> {
        let cards = &ask.cards.0;
        let apart = ask.distinct != config::Distinct::Off;
        let mut counts = vec![0; cards.len()];
        let on = |at: usize| std::iter::repeat_n(at, cards[at].required.len());
        let mut chosen: Vec<usize> = (0..cards.len()).flat_map(on).collect();
        let size = chosen.len() + ask.count;
        let mut gains: Vec<u64> = (0..cards.len())
            .map(|at| self.card_gain(at, &chosen, size))
            .collect();
        for _ in 0..ask.count {
            let open = (0..cards.len()).filter(|at| cards[*at].free.len() > counts[*at]);
            let together = |at: usize| {
                if apart {
                    counts[at] + cards[at].required.len()
                } else {
                    0
                }
            };
            let next = open.min_by_key(|at| (together(*at), u64::MAX - gains[*at]));
            let Some(next) = next else { break };
            counts[next] += 1;
            chosen.push(next);
            for (at, gain) in gains.iter_mut().enumerate() {
                *gain = gain.saturating_add(self.pair_score(at, next).saturating_mul(2));
            }
        }
        counts
    }
}

/// Returns the score of a pair, relative to the best link between any two of the cards.
fn two(
    weights: &Weights,
    ask: &PolicyInput<'_, '_>,
    (links, best): (&Matrix, Option<u32>),
    (a, b): (usize, usize),
) -> u64 {
    // A card is nearest to itself: units of one card share its memory and need no link.
    let (link, numa) = match (a == b, ask.cards.0[a].entry, ask.cards.0[b].entry) {
        (true, ..) => (FULL, FULL),
        (_, Some(one), Some(other)) => {
            let best = u64::from(best.unwrap_or_default().max(1));
            let same = CardConnection::between(&one.device, &other.device).same_numa == Some(true);
            let link = u64::from(links.score_of_pair(a, b)) * FULL / best;
            (link, if same { FULL } else { 0 })
        }
        _ => (0, 0),
    };
    u64::from(weights.link) * link + u64::from(weights.numa) * numa
}

/// Returns the score of a card by itself, relative to the highest power draw of any of the cards.
fn score_card(
    weights: &Weights,
    ask: &PolicyInput<'_, '_>,
    card: &RequestCard<'_>,
    hottest: Option<u32>,
) -> u64 {
    let part = |part: usize, whole: usize| {
        let of = |count| u64::try_from(count).unwrap_or(u64::MAX);
        of(part).saturating_mul(FULL) / of(whole).max(1)
    };
    let load = part(card.free.len().min(card.total), card.total);
    let cool = card_sample(card, ask).and_then(|sample| sample.temperature_celsius);
    // 0 °C gives 1000 and 100 °C gives 0.
    let cool = cool.map_or(0, |celsius| FULL - u64::from(celsius.min(100)) * 10);
    let most = u64::from(hottest.unwrap_or_default().max(1));
    let frugal = card_power(card, ask).map_or(0, |power| FULL - u64::from(power) * FULL / most);
    u64::from(weights.load) * load
        + u64::from(weights.temperature) * cool
        + u64::from(weights.power) * frugal
}

fn card_power(card: &RequestCard<'_>, ask: &PolicyInput<'_, '_>) -> Option<u32> {
    card_sample(card, ask)?.power_milliwatts
}

fn card_sample<'a>(card: &RequestCard<'_>, ask: &PolicyInput<'a, '_>) -> Option<&'a Telemetry> {
    ask.samples.telemetry(&card.entry?.device.id)
}
