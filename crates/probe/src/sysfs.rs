//! Files of the host that every vendor's backend reads: the PCI bus, NUMA nodes and device nodes.
//! A read may hang like a driver call, so each one is recorded in the call table.

pub mod bus;
mod files;
mod numa;

pub use self::{files::HostFiles, numa::NumaNodes};
