//! Reasons for which a request for preferred units is refused.

/// Reason for which a request is refused. The kubelet rejects a pod whose request is refused, so
/// that each variant stands for a request that cannot be met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request is larger than the number of available ids.
    #[error("{size} of {resource} requested, but only {available} of them are available")]
    TooFew {
        /// Number of ids requested.
        size: usize,
        /// Name of the resource.
        resource: String,
        /// Number of ids available.
        available: usize,
    },
    /// More ids must be included than are requested.
    #[error("{size} of {resource} requested, but {required} ids must be included")]
    TooManyRequired {
        /// Number of ids requested.
        size: usize,
        /// Name of the resource.
        resource: String,
        /// Number of ids that must be included.
        required: usize,
    },
    /// An id that must be included is not available.
    #[error("{id} must be included and is not among the available {resource}")]
    RequiredNotAvailable {
        /// Id that must be included.
        id: String,
        /// Name of the resource.
        resource: String,
    },
    /// The pool requires different cards, and too few cards have an available id.
    #[error(
        "{size} of {resource} requested, but only {cards} different cards have some available, and \
         the pool `{pool}` has `distinct: require`; ask for {cards} at most, or set `distinct: prefer`"
    )]
    TooFewCards {
        /// Number of ids requested.
        size: usize,
        /// Name of the resource.
        resource: String,
        /// Number of cards with an available id.
        cards: usize,
        /// Pool with `distinct: require`.
        pool: String,
    },
    /// The pool requires different cards, and two ids of one card must be included.
    #[error(
        "{first} and {second} must be included and are on one card, but the pool `{pool}` of \
         {resource} has `distinct: require`; set `distinct: prefer` to allow that"
    )]
    RequiredTogether {
        /// First id on the card.
        first: String,
        /// Second id on the card.
        second: String,
        /// Name of the resource.
        resource: String,
        /// Pool with `distinct: require`.
        pool: String,
    },
}
