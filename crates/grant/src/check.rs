//! Requests of the device plugin: checks that ids may be granted together, and finds their devices.

use std::collections::{BTreeMap, BTreeSet};

use config::Distinct;
use model::{Device, DeviceId};
use pool::{Offer, Unit};

/// Highest number of ids in the text of an error.
const NAMED: usize = 8;

/// Reason why ids are not granted. The kubelet shows it as the reason of a pod that failed with
/// `UnexpectedAdmissionError`, and does not try the pod again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request has no ids.
    #[error("a request for {resource} names no device; request 1 or more, or none of it")]
    Empty {
        /// Name of the resource.
        resource: String,
    },
    /// The request has more ids than the resource.
    #[error(
        "{requested} of {resource} requested, but this node has only {total}; request at most {total}"
    )]
    Oversized {
        /// Number of ids requested.
        requested: usize,
        /// Name of the resource.
        resource: String,
        /// Number of ids that the resource has.
        total: usize,
    },
    /// The request has an id twice.
    #[error("{id} of {resource} is requested twice in one container; name each id once")]
    Duplicate {
        /// Repeated id.
        id: String,
        /// Name of the resource.
        resource: String,
    },
    /// The resource does not have some of the ids.
    #[error(
        "not a device of {resource} on this node: {ids}; delete the pod, so that it is placed \
         again with the devices that are there"
    )]
    Unknown {
        /// Unknown ids.
        ids: String,
        /// Name of the resource.
        resource: String,
    },
    /// The request has more than one share, and a container may have only one.
    #[error(
        "{requested} of {resource} requested for one container, but the maximum is 1, because the \
         pool `{pool}` gives a container one share only (`onePerRequest`; in NVIDIA's config \
         `failRequestsGreaterThanOne`): more shares are no more of the card; request 1"
    )]
    OnePerRequest {
        /// Number of ids requested.
        requested: usize,
        /// Name of the resource.
        resource: String,
        /// Pool with `onePerRequest`.
        pool: String,
    },
    /// Some units are on one card, and each unit must be on a card of its own.
    #[error(
        "{ids} of {resource} are all on the card {card}, but the pool `{pool}` requires a card of \
         its own for each unit of a container (`distinct: require`); this node has {cards} such \
         cards: request no more than are free, or set `distinct: prefer`"
    )]
    NotDistinct {
        /// Ids on the same card.
        ids: String,
        /// Name of the resource.
        resource: String,
        /// Id of the card.
        card: DeviceId,
        /// Pool with `distinct: require`.
        pool: String,
        /// Number of cards with a healthy unit of the resource.
        cards: usize,
    },
    /// Some devices must not be handed out.
    #[error(
        "unhealthy devices of {resource}: {devices}; delete the pod, so that it is placed on \
         healthy ones"
    )]
    Unhealthy {
        /// Name of the resource.
        resource: String,
        /// Ids, each with the reason.
        devices: String,
    },
}

/// Returns the devices of `ids`, each once, in the order of the request.
///
/// Health is checked here again: the kubelet knows a device as Healthy until it has read the next
/// list.
///
/// # Errors
/// The ids may not be granted together. An error of the request itself comes before a fault of a
/// device.
pub fn check_ids<'a>(offer: &'a Offer, ids: &[String]) -> Result<Vec<&'a Device>, Error> {
    check_count(offer, ids)?;
    let found = find_units(offer, ids)?;
    one_per_request(offer, &found)?;
    distinct(offer, &found)?;
    check_health(offer, &found)?;
    let mut seen = BTreeSet::new();
    let devices = found.into_iter().map(|(_, device)| device);
    Ok(devices.filter(|device| seen.insert(&device.id)).collect())
}

fn check_count(offer: &Offer, ids: &[String]) -> Result<(), Error> {
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

/// Finds the unit and the device of each id.
fn find_units<'a>(offer: &'a Offer, ids: &[String]) -> Result<Vec<(&'a Unit, &'a Device)>, Error> {
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
        match unit.and_then(|unit| Some((unit, &*offer.entry_of_unit(unit)?.device))) {
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

/// Refuses a second share for one container. Requests for several whole devices pass.
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
        let ids = by_card.entry(device.card_id()).or_default();
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
        cards: count_usable_cards(offer),
    })
}

/// Returns the number of cards with a healthy unit.
fn count_usable_cards(offer: &Offer) -> usize {
    let units = offer.units.iter().filter(|unit| unit.healthy);
    let entries = units.filter_map(|unit| offer.entry_of_unit(unit));
    let cards: BTreeSet<&DeviceId> = entries.map(|entry| entry.device.card_id()).collect();
    cards.len()
}

fn check_health(offer: &Offer, found: &[(&Unit, &Device)]) -> Result<(), Error> {
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

/// Joins names for an error. The list is cut: gRPC sends the text of an error in a header, whose
/// size is limited.
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
