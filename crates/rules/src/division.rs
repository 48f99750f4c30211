//! The part that each device plays before the pools see it.

use model::{Entry, Kind};

/// The part that a device plays before the pools see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The pools may take it.
    Offered,
    /// Its partitions stand for it.
    Partitioned,
    /// Its card stands for it; the reason, for a person.
    Whole(String),
    /// The vendor's strategy for partitions has no place for it; the reason, for a person.
    Unfit(String),
    /// It is gone, and no device of its kind is served any more; the reason, for a person.
    Gone(String),
}

/// Offers partitions beside whole cards: what fits a vendor without strategies.
pub(crate) fn mixed(entry: &Entry) -> Standing {
    if matches!(entry.device.kind, Kind::Card { partitioned: true }) {
        Standing::Partitioned
    } else {
        Standing::Offered
    }
}
