//! A simulated node's folder: its state, the host's files that follow from it, and how both are
//! changed.
//!
//! The commands that change a node (crate sim) and the driver library that programs load (crate
//! sim-driver) have this in common, so that there is one definition of what is in the folder.

mod bus;
mod folder;
pub mod identity;
pub mod mig;
pub mod state;
pub mod store;
mod tree;

pub use self::{
    bus::{BusId, InvalidBusId},
    folder::Folder,
    tree::Tree,
};
