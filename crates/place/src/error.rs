//! Why a request cannot be met.

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
    /// The pool wants different cards, and there are not as many.
    #[error(
        "{size} of {resource} requested, but only {cards} different cards have some available, and \
         the pool `{pool}` has `distinct: require`; ask for {cards} at most, or set `distinct: prefer`"
    )]
    TooFewCards {
        /// What was asked for.
        size: usize,
        /// Of which resource.
        resource: String,
        /// How many cards there are.
        cards: usize,
        /// The pool that wants it so.
        pool: String,
    },
    /// The pool wants different cards, and two ids of one card must be included.
    #[error(
        "{first} and {second} must be included and are on one card, but the pool `{pool}` of \
         {resource} has `distinct: require`; set `distinct: prefer` to allow that"
    )]
    RequiredTogether {
        /// One id.
        first: String,
        /// The other.
        second: String,
        /// Of which resource.
        resource: String,
        /// The pool that wants it so.
        pool: String,
    },
}
