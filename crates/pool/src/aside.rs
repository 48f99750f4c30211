//! Devices that are not offered, with their reasons, and notes on the pools of a plan.

use config::Pool;
use model::{Device, DeviceId, ResourceName};
use serde::Serialize;

/// Device that is in no offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceNotOffered {
    /// Id of the device.
    pub device: DeviceId,
    /// Pool that selects the device; absent if no pool does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Reason, for programs.
    pub kind: NotOfferedKind,
    /// Reason and remedy, for a person.
    pub reason: String,
}

/// Kind of reason why a device is in no offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotOfferedKind {
    /// The config excludes the device from every pool, or does not include it.
    Excluded,
    /// The pool of the device has it in `reserved`.
    Reserved,
    /// No pool selects the device, or all pools that do are full.
    NoPool,
    /// The pool's template gives no valid resource name for the device.
    NoName,
    /// The strategy for partitions does not offer such a device.
    Strategy,
    /// A partitioned card that is offered as its partitions.
    Partitioned,
    /// A partitioned card without partitions.
    NoPartitions,
    /// A partition whose card is offered whole.
    Whole,
    /// The device cannot be shared by the pool's method.
    Sharing,
    /// The device cannot be prepared as the pool's `preStart` demands.
    PreStart,
    /// A partition that no longer exists, and no device of its kind is offered any more.
    Gone,
    /// An earlier pool has the same resource name with other settings.
    Conflict,
    /// The id of the device is empty or has `::` in it, the mark of replicas.
    BadId,
}

/// Note on a pool, or on one of its resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanNote {
    /// Name of the pool.
    pub pool: String,
    /// Resource name; absent for a note on the whole pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceName>,
    /// Kind of note, for programs.
    pub kind: NoteKind,
    /// Note, for a person.
    pub text: String,
}

/// Kind of a note on a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoteKind {
    /// Method that `auto` chose for a resource, with the reason.
    Sharing,
    /// A pool that takes no device of this node.
    Empty,
    /// A resource whose units wait for something that its containers need.
    Waiting,
}

/// Devices found so far that are not offered.
#[derive(Debug, Default)]
pub(crate) struct NotOfferedList(Vec<DeviceNotOffered>);

// === impl NotOfferedKind ===

impl NotOfferedKind {
    /// Returns true if an operator should act. The other reasons are wishes of the config, or
    /// devices that are offered in another form.
    pub fn is_problem(self) -> bool {
        match self {
            Self::Excluded | Self::Reserved | Self::Partitioned | Self::Whole | Self::Gone => false,
            Self::NoPool
            | Self::NoName
            | Self::Strategy
            | Self::NoPartitions
            | Self::Sharing
            | Self::PreStart
            | Self::Conflict
            | Self::BadId => true,
        }
    }
}

// === impl NoteKind ===

impl NoteKind {
    /// Returns true if an operator should act.
    pub fn is_problem(self) -> bool {
        match self {
            Self::Sharing | Self::Empty => false,
            Self::Waiting => true,
        }
    }
}

// === impl NotOfferedList ===

impl NotOfferedList {
    /// Adds a device that no pool takes.
    pub(crate) fn add_device(
        &mut self,
        device: &Device,
        kind: NotOfferedKind,
        reason: impl Into<String>,
    ) {
        self.0.push(DeviceNotOffered {
            device: device.id.clone(),
            pool: None,
            kind,
            reason: reason.into(),
        });
    }

    /// Adds a device of a pool.
    pub(crate) fn put_of(
        &mut self,
        pool: &Pool,
        device: &Device,
        kind: NotOfferedKind,
        reason: impl Into<String>,
    ) {
        self.add_device(device, kind, reason);
        if let Some(last) = self.0.last_mut() {
            last.pool = Some(pool.name.clone());
        }
    }

    /// Returns all devices that are not offered, sorted by id.
    pub(crate) fn into_sorted(mut self) -> Vec<DeviceNotOffered> {
        self.0.sort_by(|a, b| a.device.cmp(&b.device));
        self.0
    }
}
