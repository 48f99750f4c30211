//! An offer: one resource with the units that can be asked of it.

use std::{borrow::Borrow, fmt, sync::Arc};

use config::Pool;
use model::{DeviceId, Entry, ResourceName, Snapshot};
use rules::{Lists, Vendors};
use serde::Serialize;

/// Every resource of the node, sorted by name.
pub type Offers = Arc<[Arc<Offer>]>;

/// One resource and everything needed to answer for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The name the kubelet knows.
    pub resource: ResourceName,
    /// What can be asked for, sorted by id.
    pub units: Vec<Unit>,
    /// The snapshot that the offer was made from.
    pub snapshot: Arc<Snapshot>,
    /// The pool it comes from.
    pub pool: Arc<Pool>,
    /// The ways in which the container runtime is told of its devices. A draft has them as far as the config
    /// tells; who writes the CDI specs settles `auto`.
    pub lists: Lists,
    /// The vendors whose rules its devices follow.
    pub vendors: Vendors,
}

/// One thing the kubelet can count and ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unit {
    /// The id the kubelet knows.
    pub id: UnitId,
    /// The device behind it.
    pub device: DeviceId,
    /// Whether it may be handed out.
    pub healthy: bool,
    /// Why not, for a person; empty when it is healthy.
    pub reason: String,
    /// The NUMA node, where known.
    pub numa: Option<u32>,
}

/// The id of a [`Unit`]: unique on the node, stable across restarts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct UnitId(String);

// === impl Offer ===

impl Offer {
    /// The unit of that id. Costs a binary search.
    pub fn unit(&self, id: &str) -> Option<&Unit> {
        self.units
            .binary_search_by(|unit| unit.id.as_str().cmp(id))
            .ok()
            .map(|at| &self.units[at])
    }

    /// The device behind a unit of this offer, with its verdict.
    pub fn entry(&self, unit: &Unit) -> Option<&Entry> {
        self.snapshot.find(unit.device.as_str())
    }

    /// How many units may be handed out.
    pub fn healthy(&self) -> usize {
        self.units.iter().filter(|unit| unit.healthy).count()
    }
}

// === impl UnitId ===

impl UnitId {
    /// Takes the text as it is.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for UnitId {
    fn borrow(&self) -> &str {
        &self.0
    }
}
