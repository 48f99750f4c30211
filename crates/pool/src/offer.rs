//! Offer: one resource with the units that the kubelet can ask for.

use std::{borrow::Borrow, fmt, sync::Arc};

use config::Pool;
use model::{DeviceId, Entry, ResourceName, Snapshot};
use rules::{ResolvedLists, Vendors};
use serde::Serialize;

/// Every resource of the node, sorted by name.
pub type Offers = Arc<[Arc<Offer>]>;

/// One resource, with everything that an answer to the kubelet needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Resource name that the kubelet registers.
    pub resource: ResourceName,
    /// Units that the kubelet lists, sorted by id.
    pub units: Vec<Unit>,
    /// Snapshot that the offer was made from.
    pub snapshot: Arc<Snapshot>,
    /// Pool of the devices; of several pools the first.
    pub pool: Arc<Pool>,
    /// Strategies by which the container runtime learns of the devices. In a draft they follow the
    /// config only; the CDI stage decides `auto`.
    pub lists: ResolvedLists,
    /// Vendors whose rules apply to the devices.
    pub vendors: Vendors,
}

/// One device id of a resource, as the kubelet counts and requests it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unit {
    /// Id that the kubelet sees.
    pub id: UnitId,
    /// Device that the unit stands for.
    pub device: DeviceId,
    /// True if the unit may be handed out. An unhealthy unit stays listed: the kubelet counts it in
    /// the capacity, and not in the allocatable amount (`pkg/kubelet/cm/devicemanager/manager.go,
    /// GetCapacity`).
    pub healthy: bool,
    /// Reason why the unit may not be handed out, for a person; empty if the unit is healthy.
    pub reason: String,
    /// NUMA node; `None` where it is not known. The kubelet must never get −1: with such a node no
    /// NUMA mask matches, and the topology manager rejects pods under `restricted` and
    /// `single-numa-node`.
    pub numa: Option<u32>,
}

/// Id of a [`Unit`]: unique on the node, and stable across restarts. At most 63 characters are
/// safe, though no kubelet enforces that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct UnitId(String);

// === impl Offer ===

impl Offer {
    /// Returns the unit with this id. Costs a binary search.
    pub fn unit(&self, id: &str) -> Option<&Unit> {
        self.units
            .binary_search_by(|unit| unit.id.as_str().cmp(id))
            .ok()
            .map(|at| &self.units[at])
    }

    /// Returns the device of a unit of this offer, with its verdict.
    pub fn entry_of_unit(&self, unit: &Unit) -> Option<&Entry> {
        self.snapshot.find_entry(unit.device.as_str())
    }

    /// Returns the number of units that may be handed out.
    pub fn healthy_count(&self) -> usize {
        self.units.iter().filter(|unit| unit.healthy).count()
    }
}

// === impl UnitId ===

impl UnitId {
    /// Wraps a text without any check.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Returns the id as the kubelet sees it.
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
