//! Placement: the units that are best together. Pure functions that read an offer and nothing else.
//!
//! [`prefer()`] answers the kubelet's `GetPreferredAllocation` by the policy of the pool. [`Way`]
//! has the facts about the connection of two cards. A vendor's table turns a `Way` into a score,
//! and [`best`] searches on scores alone.

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
    clock::Clock,
    error::Error,
    matrix::Matrix,
    prefer::{Request, prefer, prefer_at},
    search::{EXACT, best},
    topology::Topology,
    way::Way,
};
