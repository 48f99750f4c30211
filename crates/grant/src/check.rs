//! Requests of the device plugin: ids that may be granted together, and the devices behind them.

use std::collections::{BTreeMap, BTreeSet};

use config::Distinct;
use model::{Device, DeviceId};
use pool::{Offer, Unit};

/// How many ids an error names.
const NAMED: usize = 8;

/// Why ids are not granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing was asked for.
    #[error("a request for {resource} names no device; request 1 or more, or none of it")]
    Empty {
        /// Of which resource.
        resource: String,
    },
    /// More ids than the resource has.
    #[error(
        "{requested} of {resource} requested, but this node has only {total}; request at most {total}"
    )]
    Oversized {
        /// How many ids were given.
        requested: usize,
        /// Of which resource.
        resource: String,
        /// How many there are.
        total: usize,
    },
    /// The same id twice.
    #[error("{id} of {resource} is requested twice in one container; name each id once")]
    Duplicate {
        /// The id.
        id: String,
        /// Of which resource.
        resource: String,
    },
    /// Ids that the resource does not have.
    #[error(
        "not a device of {resource} on this node: {ids}; delete the pod, so that it is placed \
         again with the devices that are there"
    )]
    Unknown {
        /// The ids.
        ids: String,
        /// Of which resource.
        resource: String,
    },
    /// More than one share where a container may have only one.
    #[error(
        "{requested} of {resource} requested for one container, but the maximum is 1, because the \
         pool `{pool}` gives a container one share only (`onePerRequest`; in NVIDIA's config \
         `failRequestsGreaterThanOne`): more shares are no more of the card; request 1"
    )]
    OnePerRequest {
        /// How many ids were given.
        requested: usize,
        /// Of which resource.
        resource: String,
        /// The pool whose rule it is.
        pool: String,
    },
    /// Units on one card where each must be on a card of its own.
    #[error(
        "{ids} of {resource} are all on the card {card}, but the pool `{pool}` requires a card of \
         its own for each unit of a container (`distinct: require`); this node has {cards} such \
         cards: request no more than are free, or set `distinct: prefer`"
    )]
    NotDistinct {
        /// The ids that share a card.
        ids: String,
        /// Of which resource.
        resource: String,
        /// The card.
        card: DeviceId,
        /// The pool whose rule it is.
        pool: String,
        /// How many cards have a healthy unit of the resource.
        cards: usize,
    },
    /// Devices that must not be handed out.
    #[error(
        "unhealthy devices of {resource}: {devices}; delete the pod, so that it is placed on \
         healthy ones"
    )]
    Unhealthy {
        /// Of which resource.
        resource: String,
        /// The ids, each with the reason.
        devices: String,
    },
}

/// Finds the devices behind `ids`, each once, in the order of the request.
///
/// # Errors
/// The reason why the ids may not be granted together. What is wrong with the request itself is told before
/// what is wrong with the devices now.
pub fn check<'a>(offer: &'a Offer, ids: &[String]) -> Result<Vec<&'a Device>, Error> {
    count(offer, ids)?;
    let found = find(offer, ids)?;
    one_per_request(offer, &found)?;
    distinct(offer, &found)?;
    healthy(offer, &found)?;
    let mut seen = BTreeSet::new();
    let devices = found.into_iter().map(|(_, device)| device);
    Ok(devices.filter(|device| seen.insert(&device.id)).collect())
}

fn count(offer: &Offer, ids: &[String]) -> Result<(), Error> {
    let resource = offer.resource.to_string();
    let (requested, total) = (ids.len(), offer.units.len());
    match requested {
        0 => Err(Error::Empty { resource }),
        _ if requested > total => Err(Error::Oversized {
            requested,
            resource,
            total,
        }),
        _ => Ok(()),
    }
}

/// The unit and the device of each id.
fn find<'a>(offer: &'a Offer, ids: &[String]) -> Result<Vec<(&'a Unit, &'a Device)>, Error> {
    let mut seen = BTreeSet::new();
    if let Some(id) = ids.iter().find(|id| !seen.insert(*id)) {
        return Err(Error::Duplicate {
            id: id.clone(),
            resource: offer.resource.to_string(),
        });
    }
    let (mut found, mut unknown) = (Vec::with_capacity(ids.len()), Vec::new());
    for id in ids {
        let unit = offer.unit(id);
        match unit.and_then(|unit| Some((unit, &*offer.entry(unit)?.device))) {
            Some(pair) => found.push(pair),
            None => unknown.push(id.as_str()),
        }
    }
    if unknown.is_empty() {
        return Ok(found);
    }
    Err(Error::Unknown {
        ids: some(&unknown),
        resource: offer.resource.to_string(),
    })
}

/// The rule is for shares: whole devices may be many.
fn one_per_request(offer: &Offer, found: &[(&Unit, &Device)]) -> Result<(), Error> {
    let share = |(unit, _): &(&Unit, &Device)| unit.id.as_str() != unit.device.as_str();
    if !offer.pool.sharing.one_per_request || found.len() < 2 || !found.iter().any(share) {
        return Ok(());
    }
    Err(Error::OnePerRequest {
        requested: found.len(),
        resource: offer.resource.to_string(),
        pool: offer.pool.name.clone(),
    })
}

fn distinct(offer: &Offer, found: &[(&Unit, &Device)]) -> Result<(), Error> {
    if offer.pool.sharing.distinct != Distinct::Require {
        return Ok(());
    }
    let mut by_card: BTreeMap<&DeviceId, Vec<&str>> = BTreeMap::new();
    for (unit, device) in found {
        let ids = by_card.entry(device.card()).or_default();
        ids.push(unit.id.as_str());
    }
    let Some((card, ids)) = by_card.into_iter().find(|(_, ids)| ids.len() > 1) else {
        return Ok(());
    };
    Err(Error::NotDistinct {
        ids: some(&ids),
        resource: offer.resource.to_string(),
        card: card.clone(),
        pool: offer.pool.name.clone(),
        cards: usable(offer),
    })
}

/// How many cards have a healthy unit.
fn usable(offer: &Offer) -> usize {
    let units = offer.units.iter().filter(|unit| unit.healthy);
    let entries = units.filter_map(|unit| offer.entry(unit));
    let cards: BTreeSet<&DeviceId> = entries.map(|entry| entry.device.card()).collect();
    cards.len()
}

fn healthy(offer: &Offer, found: &[(&Unit, &Device)]) -> Result<(), Error> {
    let sick = found.iter().filter(|(unit, _)| !unit.healthy);
    let sick: Vec<String> = sick
        .map(|(unit, _)| match unit.reason.as_str() {
            "" => unit.id.to_string(),
            reason => format!("{} ({reason})", unit.id),
        })
        .collect();
    if sick.is_empty() {
        return Ok(());
    }
    Err(Error::Unhealthy {
        resource: offer.resource.to_string(),
        devices: some(&sick),
    })
}

/// A list for an error, which must stay short enough for the header that carries it.
fn some<T: AsRef<str>>(names: &[T]) -> String {
    let named: Vec<&str> = names.iter().take(NAMED).map(AsRef::as_ref).collect();
    let named = named.join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
