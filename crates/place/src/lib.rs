//! Which units are best together. Pure functions that read an offer and nothing else.
//!
//! [`prefer()`] answers the kubelet's question by the pool's policy. Below it, [`Way`] is what is
//! known between two cards, a vendor's table makes a number of it, and [`best`] searches on numbers alone.

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
