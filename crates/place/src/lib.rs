//! Placement: the units that are best together. Pure functions that read an offer and nothing else.
//!
//! [`prefer()`] answers the kubelet's `GetPreferredAllocation` by the policy of the pool. [`CardConnection`]
//! has the facts about the connection of two cards. A vendor's table turns a `CardConnection` into a score,
//! and [`find_best_set`] searches on scores alone.

#[cfg(test)]
mod brute;
mod cards;
mod clock;
mod error;
#[cfg(test)]
mod machines;
mod matrix;
mod policy;
mod prefer;
mod search;
mod topology;
mod way;

pub use self::{
    clock::GrantHistory,
    error::Error,
    matrix::Matrix,
    prefer::{PreferRequest, prefer, prefer_at},
    search::{EXACT, find_best_set},
    topology::CardTopology,
    way::CardConnection,
};
