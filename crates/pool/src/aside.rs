//! What is not offered and why, and what else a person should know of a plan.

use config::Pool;
use model::{Device, DeviceId, ResourceName};
use serde::Serialize;

/// A device that is in no offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Aside {
    /// The device.
    pub device: DeviceId,
    /// The pool that would have it, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The reason, for programs.
    pub kind: AsideKind,
    /// The reason, for a person.
    pub reason: String,
}

/// Why a device is in no offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AsideKind {
    /// The config keeps it out of every pool.
    Excluded,
    /// Its pool keeps it back.
    Reserved,
    /// No pool takes it.
    NoPool,
    /// Its pool makes no valid resource name for it.
    NoName,
    /// The strategy for partitions has no place for it.
    Strategy,
    /// A partitioned card: its partitions stand for it.
    Partitioned,
    /// A partitioned card without partitions.
    NoPartitions,
    /// A partition whose card stands for it.
    Whole,
    /// It cannot be shared as its pool asks.
    Sharing,
    /// It cannot be prepared as its pool asks.
    PreStart,
    /// A partition that is gone, and no device of its kind is served any more.
    Gone,
    /// An earlier pool has the resource name, with other settings.
    Conflict,
    /// Its id could be taken for another unit's.
    BadId,
}

/// Something to know of a pool, apart from single devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The pool.
    pub pool: String,
    /// The resource, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceName>,
    /// What it is about, for programs.
    pub kind: NoteKind,
    /// The note, for a person.
    pub text: String,
}

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoteKind {
    /// How `auto` shares a resource, and why so.
    Sharing,
    /// A pool that takes no device of this node.
    Empty,
    /// A resource whose units wait for something that its containers cannot do without.
    Waiting,
}

/// What has been set aside so far.
#[derive(Debug, Default)]
pub(crate) struct Asides(Vec<Aside>);

// === impl AsideKind ===

impl AsideKind {
    /// Whether somebody should look into it. The others are what the config asks for, or devices
    /// that are offered in another form.
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
    /// Whether somebody should look into it.
    pub fn is_problem(self) -> bool {
        match self {
            Self::Sharing | Self::Empty => false,
            Self::Waiting => true,
        }
    }
}

// === impl Asides ===

impl Asides {
    /// Sets a device aside that no pool has taken.
    pub(crate) fn put(&mut self, device: &Device, kind: AsideKind, reason: impl Into<String>) {
        self.0.push(Aside {
            device: device.id.clone(),
            pool: None,
            kind,
            reason: reason.into(),
        });
    }

    /// Sets a device of a pool aside.
    pub(crate) fn put_of(
        &mut self,
        pool: &Pool,
        device: &Device,
        kind: AsideKind,
        reason: impl Into<String>,
    ) {
        self.put(device, kind, reason);
        if let Some(last) = self.0.last_mut() {
            last.pool = Some(pool.name.clone());
        }
    }

    /// All of them, sorted by device.
    pub(crate) fn sorted(mut self) -> Vec<Aside> {
        self.0.sort_by(|a, b| a.device.cmp(&b.device));
        self.0
    }
}
