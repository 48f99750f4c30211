//! State of each device before it is assigned to a pool: offered, or not offered with a reason.

use model::{Entry, Kind};

/// Answer of a vendor's strategy for partitions about one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eligibility {
    /// Pools may take the device.
    Offered,
    /// A partitioned card, offered as its partitions.
    Partitioned,
    /// A partition whose card is offered whole; the reason, for a person.
    Whole(String),
    /// The strategy for partitions does not offer such a device; the reason, for a person.
    Unfit(String),
    /// The device no longer exists, and no device of its kind is offered; the reason, for a person.
    Gone(String),
}

/// Offers partitions beside whole cards, as fits a vendor without strategies.
pub(crate) fn mixed(entry: &Entry) -> Eligibility {
    if matches!(entry.device.kind, Kind::Card { partitioned: true }) {
        Eligibility::Partitioned
    } else {
        Eligibility::Offered
    }
}
