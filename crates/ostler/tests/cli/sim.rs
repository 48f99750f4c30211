//! `ostler sim`: every command does what it says to a node, and says what it did.

mod changes;
mod kubelet;
mod nodes;
mod rig;
