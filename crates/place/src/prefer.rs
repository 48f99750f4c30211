//! The preferred set for a request.

use pool::{Offer, UnitId};

/// Why a request cannot be met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// More was asked for than there is to choose from.
    #[error("{size} of {resource} requested, but only {available} of them are available")]
    TooFew {
        /// What was asked for.
        size: usize,
        /// Of which resource.
        resource: String,
        /// How many there are.
        available: usize,
    },
    /// The ids that must be included are more than the request.
    #[error("{size} of {resource} requested, but {required} ids must be included")]
    TooManyRequired {
        /// What was asked for.
        size: usize,
        /// Of which resource.
        resource: String,
        /// How many must be included.
        required: usize,
    },
    /// An id that must be included is not among the available ones.
    #[error("{id} must be included and is not among the available {resource}")]
    RequiredNotAvailable {
        /// The id.
        id: String,
        /// Of which resource.
        resource: String,
    },
}

/// Chooses `size` distinct ids out of `available`, with all of `required` among them.
pub fn prefer(
    offer: &Offer,
    available: &[String],
    required: &[String],
    size: usize,
) -> Result<Vec<UnitId>, Error> {
    let _ = (offer, available, required, size);
    Ok(Vec::new())
}
