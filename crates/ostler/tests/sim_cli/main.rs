//! `ostler sim`: every command does what it says to a node, and says what it did.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod changes;
mod kubelet;
mod nodes;
mod rig;
