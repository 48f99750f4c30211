//! Safe bindings of NVML over `dlopen`: the only unsafe code of the product.
//!
//! Nothing is linked. The driver's library is loaded at run time, and each symbol is looked up when
//! it is called. With an old driver one fact is missing; a linked binary would not start at all.
//! Every foreign call goes through one function, which adds the call to the call table of the crate
//! `probe` before the call and removes it on return. The supervisor names a hanging call from this
//! table.

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
    board::{ClockDomain, FabricMembership, PciIds, TemperatureThreshold},
    condition::{FabricState, RemappedRows},
    device::DeviceHandle,
    error::{Error, ReturnCode},
    event::{DriverEvent, EventKind, EventSet},
    library::{NvmlLibrary, NvmlSession},
    link::{LinkRemote, TopologyLevel},
    mig::MigAttributes,
    process::ComputeProcess,
    sensor::MemorySizes,
    shape::{InstancePlacement, InstanceProfile, InstanceShape},
};
