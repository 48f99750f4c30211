//! Policies that take one unit after the other, each time from the card with the lowest key.

use config::Distinct;

use super::PolicyInput;

/// Use of one card at one step of the choice.
pub(super) struct CardUse<'a> {
    /// Number of units in use, including those that this call chose.
    allocated: usize,
    /// Number of units that this call chose.
    picked: usize,
    /// Number of units that are still free.
    free: usize,
    /// Number of units that this call still has to choose; 1 if each is to be on a card of its own.
    missing: usize,
    /// Number of the card's last grant, looked up only by the policy that needs it.
    last: &'a dyn Fn() -> u64,
}

/// Sort key of a card. The lowest wins; of equal cards the first is taken.
type CardKey = [usize; 3];

/// Prefers the fullest card, and of equally full cards one that this call did not choose yet. If an
/// unused card must be opened, prefers the smallest that holds all missing units, else the largest.
pub(super) fn packed(card: &CardUse<'_>) -> CardKey {
    // Ranks by the number in use, not by the share in use, as NVIDIA's plugin does
    // (`internal/rm/allocate.go`).
    [usize::MAX - card.allocated, card.picked, key_of_fit(card)]
}

/// Prefers the emptiest card, and of equally empty cards one that this call did not choose yet.
pub(super) fn spread(card: &CardUse<'_>) -> CardKey {
    [card.allocated, card.picked, 0]
}

/// Takes the first card with a free unit.
pub(super) fn first_fit(_: &CardUse<'_>) -> CardKey {
    [0; 3]
}

/// Prefers the card with the fewest free units that holds all missing ones, else the card with the
/// most free units. A card that this call began to use is used up first.
pub(super) fn best_fit(card: &CardUse<'_>) -> CardKey {
    [usize::from(card.picked == 0), key_of_fit(card), 0]
}

/// Prefers the least recently granted card. Cards that this call chose come last.
pub(super) fn round_robin(card: &CardUse<'_>) -> CardKey {
    let last = usize::try_from((card.last)()).unwrap_or(usize::MAX);
    [card.picked, last, 0]
}

/// Takes units one by one. If different cards are wanted, cards with the fewest units of this
/// container come first, whatever the policy says.
pub(super) fn choose_greedy(
    ask: &PolicyInput<'_, '_>,
    key: fn(&CardUse<'_>) -> CardKey,
) -> Vec<usize> {
    let cards = &ask.cards.0;
    let apart = ask.distinct != Distinct::Off;
    let mut counts = vec![0; cards.len()];
    for taken in 0..ask.count {
        let open = (0..cards.len()).filter(|at| cards[*at].free.len() > counts[*at]);
        let next = open.min_by_key(|at| {
            let (card, picked) = (&cards[*at], counts[*at]);
            let moment = CardUse {
                allocated: card.allocated_units() + picked,
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

/// Returns a lower key for a card that holds all missing units with fewer to spare.
fn key_of_fit(card: &CardUse<'_>) -> usize {
    match card.free >= card.missing {
        true => card.free,
        false => usize::MAX - card.free,
    }
}
