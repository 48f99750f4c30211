//! A request seen by cards: which of its ids are on which card, and how full each card is.

use std::collections::BTreeMap;

use model::{Device, Entry};
use pool::{Offer, Unit};
use rules::{Table, Vendors};

use crate::{
    Matrix, Way,
    topology::{position, table},
};

/// One card of a request.
#[derive(Debug)]
pub(crate) struct Card<'a> {
    /// The card's id, or for what the offer does not know the text before `::`.
    pub(crate) name: &'a str,
    /// What is known of the card; absent for an id that the offer does not list.
    pub(crate) entry: Option<&'a Entry>,
    /// How many units the offer has on it.
    pub(crate) total: usize,
    /// What is available, healthy and not required, in order.
    pub(crate) free: Vec<&'a str>,
    /// What is available and not required, but unhealthy or unknown to the offer.
    pub(crate) poor: Vec<&'a str>,
    /// What is required.
    pub(crate) required: Vec<&'a str>,
}

/// The cards on which a request has ids, in the order of their indices.
#[derive(Debug)]
pub(crate) struct Cards<'a>(pub(crate) Vec<Card<'a>>);

// === impl Card ===

impl<'a> Card<'a> {
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

    /// The card's facts, where the offer knows it.
    fn device(&self) -> Option<&'a Device> {
        self.entry.map(|entry| &*entry.device)
    }

    /// How many of its units are in use, or cannot be used.
    pub(crate) fn allocated(&self) -> usize {
        self.total.saturating_sub(self.free.len())
    }
}

// === impl Cards ===

impl<'a> Cards<'a> {
    /// Sorts the ids of a request by card. Both lists are sorted and without repetition, and the
    /// first holds all of the second.
    pub(crate) fn new(offer: &'a Offer, available: &[&'a str], required: &[&'a str]) -> Self {
        let mut cards: BTreeMap<&str, Card<'a>> = BTreeMap::new();
        for id in available {
            let unit = offer.unit(id);
            let name = unit.map_or_else(|| base(id), |unit| card_of(offer, unit));
            let card = cards.entry(name);
            let card = card.or_insert_with(|| Card::new(name, offer.snapshot.find(name)));
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
        let mut cards: Vec<Card<'a>> = cards.into_values().collect();
        for card in &mut cards {
            card.free.sort_by_cached_key(|id| rank(offer, id));
            card.poor.sort_by_cached_key(|id| rank(offer, id));
        }
        cards.sort_by_key(|card| {
            let device = card.entry.map(|entry| position(&entry.device));
            (device.is_none(), device, card.name)
        });
        Self(cards)
    }

    /// The pair scores of some of the cards, by their positions.
    pub(crate) fn matrix(&self, some: &[usize], vendors: Vendors) -> Matrix {
        let table = table(self.0.iter().filter_map(Card::device), vendors);
        Matrix::new(some.len(), |a, b| self.score(some[a], some[b], table))
    }

    /// The pair score of two cards.
    fn score(&self, a: usize, b: usize, table: &Table) -> u32 {
        match (self.0[a].device(), self.0[b].device()) {
            (Some(a), Some(b)) => Way::between(a, b).worth(table),
            _ => 0,
        }
    }

    /// Whether any card has several units.
    pub(crate) fn shared(&self) -> bool {
        let units = |card: &Card<'_>| card.free.len() + card.poor.len() + card.required.len();
        self.0.iter().any(|card| card.total > 1 || units(card) > 1)
    }
}

/// The card that a unit is on.
fn card_of<'a>(offer: &'a Offer, unit: &'a Unit) -> &'a str {
    let entry = offer.entry(unit);
    entry.map_or(unit.device.as_str(), |entry| entry.device.card().as_str())
}

/// The part of an id before the number of a replica.
fn base(id: &str) -> &str {
    id.split_once("::").map_or(id, |(base, _)| base)
}

/// Where an id stands on its card: by its device, then by the number of the replica.
fn rank<'a>(offer: &'a Offer, id: &'a str) -> impl Ord + use<'a> {
    let unit = offer.unit(id);
    let device = unit.and_then(|unit| offer.entry(unit));
    let replica = id
        .split_once("::")
        .and_then(|(_, number)| number.parse::<u64>().ok());
    (device.map(|entry| position(&entry.device)), replica, id)
}
