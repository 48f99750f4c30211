//! The preferred units for a request. Total: a request that can be met is met, whatever is missing
//! from the facts; a request that cannot is refused with the reason.

use config::Distinct;
use model::Samples;
use pool::{Offer, UnitId};

use crate::{
    Clock, Error,
    cards::Cards,
    policy::{self, Ask},
};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The ids to choose from.
    pub available: &'a [String],
    /// The ids that must be among the chosen.
    pub required: &'a [String],
    /// How many are wanted.
    pub size: usize,
    /// When cards were granted last, for the policy `round-robin`.
    pub clock: &'a Clock,
    /// The newest samples, for the policy `weighted`.
    pub samples: &'a Samples,
}

/// As [`prefer_at`], for a caller without a clock and samples: `round-robin` then goes by index, and
/// to `weighted` no card is warm.
pub fn prefer(
    offer: &Offer,
    available: &[String],
    required: &[String],
    size: usize,
) -> Result<Vec<UnitId>, Error> {
    let request = Request {
        available,
        required,
        size,
        clock: &Clock::default(),
        samples: &Samples::default(),
    };
    prefer_at(offer, &request)
}

/// Chooses `size` distinct ids out of the available ones, with all required ones among them, by the
/// policy of the offer's pool. Ids that are not healthy or not in the offer are chosen last. The
/// answer is sorted by id, and the same for the same arguments in any order.
pub fn prefer_at(offer: &Offer, request: &Request<'_>) -> Result<Vec<UnitId>, Error> {
    let available = sorted(request.available);
    let required = sorted(request.required);
    check(offer, &available, &required, request.size)?;
    let cards = Cards::new(offer, &available, &required);
    let require = offer.pool.sharing.distinct == Distinct::Require;
    if require {
        check_cards(offer, &cards, request.size)?;
    }
    let mut ids = match available.len() == request.size {
        true => available,
        false => choose(offer, &cards, request, required),
    };
    ids.sort_unstable();
    Ok(ids.into_iter().map(UnitId::new).collect())
}

/// The required ids, the healthy ones that the policy chooses, and others only where these do not
/// suffice.
fn choose<'a>(
    offer: &Offer,
    cards: &Cards<'a>,
    request: &Request<'_>,
    required: Vec<&'a str>,
) -> Vec<&'a str> {
    let mut ids = required;
    let missing = request.size - ids.len();
    let distinct = offer.pool.sharing.distinct;
    let ask = Ask {
        cards,
        count: missing.min(healthy(cards, distinct)),
        distinct,
        clock: request.clock,
        samples: request.samples,
        vendors: offer.vendors,
    };
    let counts = policy::choose(&offer.pool.placement, &ask);
    for (card, count) in cards.0.iter().zip(&counts) {
        ids.extend(card.free.iter().take(*count));
    }
    let poor = cards.0.iter().zip(&counts).flat_map(|(card, count)| {
        let most = match distinct {
            Distinct::Require if *count + card.required.len() > 0 => 0,
            Distinct::Require => 1,
            Distinct::Prefer | Distinct::Off => usize::MAX,
        };
        card.poor.iter().take(most)
    });
    ids.extend(poor.take(request.size - ids.len()));
    ids
}

/// How many healthy ids can be chosen.
fn healthy(cards: &Cards<'_>, distinct: Distinct) -> usize {
    let of = |card: &crate::cards::Card<'_>| match distinct {
        Distinct::Require => usize::from(card.required.is_empty() && !card.free.is_empty()),
        Distinct::Prefer | Distinct::Off => card.free.len(),
    };
    cards.0.iter().map(of).sum()
}

/// The ids in order, each once.
fn sorted(ids: &[String]) -> Vec<&str> {
    let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn check(offer: &Offer, available: &[&str], required: &[&str], size: usize) -> Result<(), Error> {
    let resource = || offer.resource.to_string();
    if required.len() > size {
        return Err(Error::TooManyRequired {
            size,
            resource: resource(),
            required: required.len(),
        });
    }
    if let Some(id) = required
        .iter()
        .find(|id| available.binary_search(id).is_err())
    {
        return Err(Error::RequiredNotAvailable {
            id: (*id).to_owned(),
            resource: resource(),
        });
    }
    if available.len() < size {
        return Err(Error::TooFew {
            size,
            resource: resource(),
            available: available.len(),
        });
    }
    Ok(())
}

/// Whether so many different cards can be had.
fn check_cards(offer: &Offer, cards: &Cards<'_>, size: usize) -> Result<(), Error> {
    let (resource, pool) = (offer.resource.to_string(), offer.pool.name.clone());
    for card in &cards.0 {
        if let [first, second, ..] = card.required.as_slice() {
            let [first, second] = [first, second].map(|id| (*id).to_owned());
            return Err(Error::RequiredTogether {
                first,
                second,
                resource,
                pool,
            });
        }
    }
    match cards.0.len() {
        cards if cards < size => Err(Error::TooFewCards {
            size,
            resource,
            cards,
            pool,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
