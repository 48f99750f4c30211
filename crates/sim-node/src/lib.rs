//! Folder of a simulated node: its state, the host's files derived from it, and changes of both.
//!
//! The commands that change a node (crate `sim`) and the driver library that programs load (crate
//! `sim-driver`) share this crate, so the files of the folder have one definition.

mod bus;
mod folder;
pub mod identity;
pub mod mig;
pub mod state;
pub mod store;
mod tree;

pub use self::{
    bus::{BusId, InvalidBusId},
    folder::NodeFolder,
    tree::HostTree,
};
