//! A safe NVML over `dlopen`: the only unsafe code of the product.
//!
//! Nothing is linked: [`Library::open`] loads the driver's library at run time and every symbol is
//! looked up when it is called, so that an old driver lacks a fact and not the whole program.
//! Every foreign call goes through one function, which writes it down in a [`probe::Calls`] table
//! before it is made and strikes it out when it returns: that is how a call that hangs is named.

mod affinity;
mod board;
mod condition;
mod device;
mod error;
mod event;
mod library;
mod link;
mod mig;
mod process;
mod sensor;
mod shape;
mod symbol;
mod text;

pub use self::{
    board::{Clock, Fabric, PciIds, Threshold},
    condition::{Joining, Rows},
    device::Device,
    error::{Code, Error},
    event::{EventKind, EventSet, Occurrence},
    library::{Library, Session},
    link::{Level, Remote},
    mig::Attributes,
    process::User,
    sensor::Memory,
    shape::{Placement, Profile, Shape},
};
