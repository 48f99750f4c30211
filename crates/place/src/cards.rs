//! A request seen by cards: the ids of the request on each card, and the use of each card.

use std::collections::BTreeMap;

use model::{Device, Entry};
use pool::{Offer, Unit};
use rules::{ScoreTable, Vendors};

use crate::{
    CardConnection, Matrix,
    topology::{choose_table, device_sort_key},
};

/// One card of a request.
#[derive(Debug)]
pub(crate) struct RequestCard<'a> {
    /// Id of the card; for an id that the offer does not list, the text before `::`.
    pub(crate) name: &'a str,
    /// Facts and verdict of the card; absent for an id that the offer does not list.
    pub(crate) entry: Option<&'a Entry>,
    /// Number of units of the offer on the card.
    pub(crate) total: usize,
    /// Available and healthy ids that are not required, in the order in which they are taken.
    pub(crate) free: Vec<&'a str>,
    /// Available ids that are not required, and are unhealthy or not in the offer. Taken last.
    pub(crate) poor: Vec<&'a str>,
    /// Required ids.
    pub(crate) required: Vec<&'a str>,
}

/// Cards on which a request has ids, sorted by index.
#[derive(Debug)]
pub(crate) struct RequestCards<'a>(pub(crate) Vec<RequestCard<'a>>);

// === impl RequestCard ===

impl<'a> RequestCard<'a> {
    fn new(name: &'a str, entry: Option<&'a Entry>) -> Self {
        Self {
            name,
            entry,
            total: 0,
            free: Vec::new(),
            poor: Vec::new(),
            required: Vec::new(),
        }
    }

    /// Returns the facts of the card, or `None` if the offer does not list the card.
    fn card_device(&self) -> Option<&'a Device> {
        self.entry.map(|entry| &*entry.device)
    }

    /// Returns the number of units that are in use or cannot be used.
    pub(crate) fn allocated_units(&self) -> usize {
        self.total.saturating_sub(self.free.len())
    }
}

// === impl RequestCards ===

impl<'a> RequestCards<'a> {
    /// Groups the ids of a request by card. Both lists are sorted without duplicates, and
    /// `available` contains all of `required`.
    pub(crate) fn new(offer: &'a Offer, available: &[&'a str], required: &[&'a str]) -> Self {
        let mut cards: BTreeMap<&str, RequestCard<'a>> = BTreeMap::new();
        for id in available {
            let unit = offer.unit(id);
            let name = unit.map_or_else(|| base_id(id), |unit| card_of(offer, unit));
            let card = cards.entry(name);
            let card =
                card.or_insert_with(|| RequestCard::new(name, offer.snapshot.find_entry(name)));
            match unit {
                _ if required.binary_search(id).is_ok() => card.required.push(id),
                Some(unit) if unit.healthy => card.free.push(id),
                _ => card.poor.push(id),
            }
        }
        for unit in &offer.units {
            if let Some(card) = cards.get_mut(card_of(offer, unit)) {
                card.total += 1;
            }
        }
        let mut cards: Vec<RequestCard<'a>> = cards.into_values().collect();
        for card in &mut cards {
            card.free.sort_by_cached_key(|id| rank(offer, id));
            card.poor.sort_by_cached_key(|id| rank(offer, id));
        }
        cards.sort_by_key(|card| {
            let device = card.entry.map(|entry| device_sort_key(&entry.device));
            (device.is_none(), device, card.name)
        });
        Self(cards)
    }

    /// Returns the pair scores of the cards at these positions.
    pub(crate) fn matrix_of_cards(&self, some: &[usize], vendors: Vendors) -> Matrix {
        let table = choose_table(self.0.iter().filter_map(RequestCard::card_device), vendors);
        Matrix::new(some.len(), |a, b| {
            self.score_of_cards(some[a], some[b], table)
        })
    }

    /// Returns the pair score of two cards; 0 if the facts of one are not known.
    fn score_of_cards(&self, a: usize, b: usize, table: &ScoreTable) -> u32 {
        match (self.0[a].card_device(), self.0[b].card_device()) {
            (Some(a), Some(b)) => CardConnection::between(a, b).score_by(table),
            _ => 0,
        }
    }

    /// Returns true if any card has more than one unit.
    pub(crate) fn has_shared_card(&self) -> bool {
        let units =
            |card: &RequestCard<'_>| card.free.len() + card.poor.len() + card.required.len();
        self.0.iter().any(|card| card.total > 1 || units(card) > 1)
    }
}

/// Returns the id of the card that a unit is on. Partitions of one card share the id.
fn card_of<'a>(offer: &'a Offer, unit: &'a Unit) -> &'a str {
    let entry = offer.entry_of_unit(unit);
    entry.map_or(unit.device.as_str(), |entry| {
        entry.device.card_id().as_str()
    })
}

/// Returns the part of an id before `::`, as NVIDIA's plugin marks replicas
/// (`internal/rm/devices.go, AnnotatedID`).
fn base_id(id: &str) -> &str {
    id.split_once("::").map_or(id, |(base, _)| base)
}

/// Returns the sort key of an id on its card: the device first, then the number of the replica.
fn rank<'a>(offer: &'a Offer, id: &'a str) -> impl Ord + use<'a> {
    let unit = offer.unit(id);
    let device = unit.and_then(|unit| offer.entry_of_unit(unit));
    // As a number: in text order the replica 10 would come before the replica 2.
    let replica = id
        .split_once("::")
        .and_then(|(_, number)| number.parse::<u64>().ok());
    (
        device.map(|entry| device_sort_key(&entry.device)),
        replica,
        id,
    )
}
