//! The preferred set for a request: the units that are closest to each other, found by growing
//! a set greedily from each possible start. Total: a request that can be met is met, whatever is
//! missing from the facts.

use std::collections::BTreeSet;

use model::{Ancestor, Device};
use pool::{Offer, UnitId};

/// Up to this many candidates each one is tried as a start; beyond, only the first, so that the
/// cost stays `size · candidates`.
const EVERY_START: usize = 32;

/// Why a request cannot be met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// More was asked for than there is to choose from.
    #[error("{size} of {resource} requested, but only {available} of them are available")]
    TooFew {
        /// What was asked for.
        size: usize,
        /// Of which resource.
        resource: String,
        /// How many there are.
        available: usize,
    },
    /// The ids that must be included are more than the request.
    #[error("{size} of {resource} requested, but {required} ids must be included")]
    TooManyRequired {
        /// What was asked for.
        size: usize,
        /// Of which resource.
        resource: String,
        /// How many must be included.
        required: usize,
    },
    /// An id that must be included is not among the available ones.
    #[error("{id} must be included and is not among the available {resource}")]
    RequiredNotAvailable {
        /// The id.
        id: String,
        /// Of which resource.
        resource: String,
    },
}

/// One id of a request with what the offer knows of it.
#[derive(Clone, Copy, Debug)]
struct Candidate<'a> {
    id: &'a str,
    /// Absent for an id that the offer does not list; it is taken only when nothing else is left.
    device: Option<&'a Device>,
    healthy: bool,
}

/// Chooses `size` distinct ids out of `available`, with all of `required` among them. Ids that
/// are not healthy or not in the offer are chosen last.
pub fn prefer(
    offer: &Offer,
    available: &[String],
    required: &[String],
    size: usize,
) -> Result<Vec<UnitId>, Error> {
    let available: BTreeSet<&str> = available.iter().map(String::as_str).collect();
    let required: BTreeSet<&str> = required.iter().map(String::as_str).collect();
    check(offer, &available, &required, size)?;

    let fixed: Vec<_> = required.iter().map(|id| candidate(offer, id)).collect();
    let free: Vec<_> = available
        .difference(&required)
        .map(|id| candidate(offer, id))
        .collect();
    let starts = match fixed.is_empty() && free.len() <= EVERY_START {
        true => free.len().max(1),
        false => 1,
    };
    let mut best: Option<(Worth, Vec<Candidate<'_>>)> = None;
    for start in 0..starts {
        let set = grow(&fixed, &free, start, size);
        let worth = worth(&set);
        if best.as_ref().is_none_or(|(highest, _)| worth > *highest) {
            best = Some((worth, set));
        }
    }
    let set = best.map(|(_, set)| set).unwrap_or_default();
    let mut ids: Vec<_> = set.into_iter().map(|c| UnitId::new(c.id)).collect();
    ids.sort();
    Ok(ids)
}

/// What a set is worth: healthy members first, then closeness.
type Worth = (usize, u64);

fn check(
    offer: &Offer,
    available: &BTreeSet<&str>,
    required: &BTreeSet<&str>,
    size: usize,
) -> Result<(), Error> {
    let resource = offer.resource.to_string();
    if required.len() > size {
        let required = required.len();
        return Err(Error::TooManyRequired {
            size,
            resource,
            required,
        });
    }
    if let Some(id) = required.difference(available).next() {
        let id = (*id).to_owned();
        return Err(Error::RequiredNotAvailable { id, resource });
    }
    if available.len() < size {
        let available = available.len();
        return Err(Error::TooFew {
            size,
            resource,
            available,
        });
    }
    Ok(())
}

fn candidate<'a>(offer: &'a Offer, id: &'a str) -> Candidate<'a> {
    let unit = offer.unit(id);
    Candidate {
        id,
        device: unit.and_then(|u| offer.entry(u)).map(|e| &e.device),
        healthy: unit.is_some_and(|u| u.healthy),
    }
}

/// Adds to `fixed` the best next one of `free` until there are `size`; without anything fixed the
/// first is `free[start]`.
fn grow<'a>(
    fixed: &[Candidate<'a>],
    free: &[Candidate<'a>],
    start: usize,
    size: usize,
) -> Vec<Candidate<'a>> {
    let mut set = fixed.to_vec();
    let mut rest: Vec<(u64, Candidate<'a>)> = free
        .iter()
        .map(|c| (fixed.iter().map(|f| closeness(f, c)).sum(), *c))
        .collect();
    let mut next = set.is_empty().then_some(start);
    while set.len() < size && !rest.is_empty() {
        let at = next.take().unwrap_or_else(|| nearest(&rest));
        let (_, chosen) = rest.remove(at.min(rest.len() - 1));
        for (score, other) in &mut rest {
            *score += closeness(&chosen, other);
        }
        set.push(chosen);
    }
    set
}

/// The position of the best candidate; of equal ones the first.
fn nearest(rest: &[(u64, Candidate<'_>)]) -> usize {
    let key = |at: usize| (rest[at].1.healthy, rest[at].0);
    (1..rest.len()).fold(0, |best, at| if key(at) > key(best) { at } else { best })
}

fn worth(set: &[Candidate<'_>]) -> Worth {
    let healthy = set.iter().filter(|c| c.healthy).count();
    let pairs = set
        .iter()
        .enumerate()
        .flat_map(|(at, a)| set[at + 1..].iter().map(move |b| closeness(a, b)));
    (healthy, pairs.sum())
}

/// How good it is to have both: parts of one card, then direct lanes or a fabric, then the way
/// through the machine. Unknown is nothing, never an obstacle.
fn closeness(a: &Candidate<'_>, b: &Candidate<'_>) -> u64 {
    let (Some(a), Some(b)) = (a.device, b.device) else {
        return 0;
    };
    if a.card() == b.card() {
        return 10_000;
    }
    let Some(link) = a.links.iter().find(|link| link.peer == *b.card()) else {
        return u64::from(a.numa.is_some() && a.numa == b.numa);
    };
    let lanes = if link.fabric { 18 } else { link.lanes.min(18) };
    let way = match link.ancestor {
        Some(Ancestor::Board) => 60,
        Some(Ancestor::Switch) => 50,
        Some(Ancestor::Switches) => 40,
        Some(Ancestor::HostBridge) => 30,
        Some(Ancestor::Node) => 20,
        Some(Ancestor::System) => 10,
        None => 0,
    };
    u64::from(lanes) * 100 + way
}

#[cfg(test)]
mod tests;
