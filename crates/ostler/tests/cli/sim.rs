//! `ostler sim`: every command changes the node as it says, and prints the change.

mod changes;
mod kubelet;
mod nodes;
mod rig;
