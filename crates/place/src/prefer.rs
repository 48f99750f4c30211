//! Preferred units for a request. A request that can be met is always met, whatever facts are
//! missing; a request that cannot be met is refused with the reason.

use config::Distinct;
use model::Samples;
use pool::{Offer, UnitId};

use crate::{
    Error, GrantHistory,
    cards::RequestCards,
    policy::{self, PolicyInput},
};

/// Question of the kubelet: ids to choose from, and the number wanted.
#[derive(Clone, Copy, Debug)]
pub struct PreferRequest<'a> {
    /// Ids to choose from.
    pub available: &'a [String],
    /// Ids that must be among the chosen ones.
    pub required: &'a [String],
    /// Number of ids wanted.
    pub size: usize,
    /// Grants so far, for the policy `round-robin`.
    pub clock: &'a GrantHistory,
    /// Newest samples, for the policy `weighted`.
    pub samples: &'a Samples,
}

/// Chooses as [`prefer_at`] does, without the past grants and samples: `round-robin` then goes by
/// index, and `weighted` knows no temperatures and powers.
///
/// # Errors
/// The request cannot be met, see [`Error`].
pub fn prefer(
    offer: &Offer,
    available: &[String],
    required: &[String],
    size: usize,
) -> Result<Vec<UnitId>, Error> {
    let request = PreferRequest {
        available,
        required,
        size,
        clock: &GrantHistory::default(),
        samples: &Samples::default(),
    };
    prefer_at(offer, &request)
}

/// Chooses `size` different ids from the available ones by the policy of the offer's pool, with all
/// required ones among them. Ids that are unhealthy or not in the offer are chosen last. The answer
/// is sorted by id and does not depend on the order of the arguments.
///
/// The kubelet sets no deadline for this call and admits no other pod while it waits
/// (`pkg/kubelet/cm/devicemanager/manager.go, callGetPreferredAllocationIfAvailable`), so that
/// nothing here asks a driver. NVIDIA's plugin reads all links in this call and took 16 to 30 s
/// (NVIDIA/k8s-device-plugin issue 774).
///
/// # Errors
/// The request cannot be met, see [`Error`]. The kubelet then rejects the pod with
/// `UnexpectedAdmissionError`.
pub fn prefer_at(offer: &Offer, request: &PreferRequest<'_>) -> Result<Vec<UnitId>, Error> {
    let available = sort_ids(request.available);
    let required = sort_ids(request.required);
    check_request(offer, &available, &required, request.size)?;
    let cards = RequestCards::new(offer, &available, &required);
    let require = offer.pool.sharing.distinct == Distinct::Require;
    if require {
        check_cards(offer, &cards, request.size)?;
    }
    // There is no choice, so that a search would be wasted.
    let mut ids = match available.len() == request.size {
        true => available,
        false => choose_ids(offer, &cards, request, required),
    };
    ids.sort_unstable();
    Ok(ids.into_iter().map(UnitId::new).collect())
}

/// Chooses the required ids, then healthy ids by the policy, then other ids if these are too few.
fn choose_ids<'a>(
    offer: &Offer,
    cards: &RequestCards<'a>,
    request: &PreferRequest<'_>,
    required: Vec<&'a str>,
) -> Vec<&'a str> {
    let mut ids = required;
    let missing = request.size - ids.len();
    let distinct = offer.pool.sharing.distinct;
    let ask = PolicyInput {
        cards,
        count: missing.min(count_healthy_ids(cards, distinct)),
        distinct,
        clock: request.clock,
        samples: request.samples,
        vendors: offer.vendors,
    };
    let counts = policy::choose_counts(&offer.pool.placement, &ask);
    for (card, count) in cards.0.iter().zip(&counts) {
        ids.extend(card.free.iter().take(*count));
    }
    // The kubelet offers healthy ids only, but its list can be older than the offer. It fills up an
    // answer that is too short in any order (`pkg/kubelet/cm/devicemanager/manager.go,
    // devicesToAllocate`).
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

/// Returns the number of healthy ids that can be chosen.
fn count_healthy_ids(cards: &RequestCards<'_>, distinct: Distinct) -> usize {
    let of = |card: &crate::cards::RequestCard<'_>| match distinct {
        Distinct::Require => usize::from(card.required.is_empty() && !card.free.is_empty()),
        Distinct::Prefer | Distinct::Off => card.free.len(),
    };
    cards.0.iter().map(of).sum()
}

/// Sorts the ids and removes duplicates.
fn sort_ids(ids: &[String]) -> Vec<&str> {
    // The kubelet lists ids in the random order of a Go map.
    let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn check_request(
    offer: &Offer,
    available: &[&str],
    required: &[&str],
    size: usize,
) -> Result<(), Error> {
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

/// Checks that `size` units can be on different cards.
fn check_cards(offer: &Offer, cards: &RequestCards<'_>, size: usize) -> Result<(), Error> {
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
