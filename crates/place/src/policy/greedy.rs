//! The policies that take one unit after the other, each time from the card with the least key.

use config::Distinct;

use super::Ask;

/// A card at one moment of the choice.
pub(super) struct Moment<'a> {
    /// How many of its units are in use, those of this request counted.
    allocated: usize,
    /// How many of its units were chosen in this call.
    picked: usize,
    /// How many are left.
    free: usize,
    /// How many units are still missing; one where each is to be on a card of its own.
    missing: usize,
    /// When the card was granted last.
    last: &'a dyn Fn() -> u64,
}

/// What is compared, the least first; of equal cards the first is taken.
type Key = [usize; 3];

/// The fullest card first; of equally full ones, one that was not picked yet. If a new card must be
/// begun, the smallest that holds all that is missing, else the largest.
pub(super) fn packed(card: &Moment<'_>) -> Key {
    [usize::MAX - card.allocated, card.picked, fit(card)]
}

/// The emptiest card first; of equally empty ones, one that was not picked yet.
pub(super) fn spread(card: &Moment<'_>) -> Key {
    [card.allocated, card.picked, 0]
}

/// The first card that has any.
pub(super) fn first_fit(_: &Moment<'_>) -> Key {
    [0; 3]
}

/// The card that has the least left and holds all that is missing, else the one with the most; a
/// card once begun is used up first.
pub(super) fn best_fit(card: &Moment<'_>) -> Key {
    [usize::from(card.picked == 0), fit(card), 0]
}

/// The least recently granted card; those picked in this call come last.
pub(super) fn round_robin(card: &Moment<'_>) -> Key {
    let last = usize::try_from((card.last)()).unwrap_or(usize::MAX);
    [card.picked, last, 0]
}

/// Takes units one by one. Where different cards are wanted, those with the fewest units of this
/// container come first.
pub(super) fn choose(ask: &Ask<'_, '_>, key: fn(&Moment<'_>) -> Key) -> Vec<usize> {
    let cards = &ask.cards.0;
    let apart = ask.distinct != Distinct::Off;
    let mut counts = vec![0; cards.len()];
    for taken in 0..ask.count {
        let open = (0..cards.len()).filter(|at| cards[*at].free.len() > counts[*at]);
        let next = open.min_by_key(|at| {
            let (card, picked) = (&cards[*at], counts[*at]);
            let moment = Moment {
                allocated: card.allocated() + picked,
                picked,
                free: card.free.len() - picked,
                missing: if apart { 1 } else { ask.count - taken },
                last: &|| ask.clock.last(card.name),
            };
            let together = if apart {
                picked + card.required.len()
            } else {
                0
            };
            (together, key(&moment))
        });
        let Some(next) = next else { break };
        counts[next] += 1;
    }
    counts
}

/// Less for a card that holds all that is missing with less to spare.
fn fit(card: &Moment<'_>) -> usize {
    match card.free >= card.missing {
        true => card.free,
        false => usize::MAX - card.free,
    }
}
