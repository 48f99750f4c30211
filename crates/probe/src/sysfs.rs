//! The host's files that the backend of every vendor reads: the PCI bus, the NUMA nodes, device
//! nodes. A read may hang as a driver call may, so each is written down in the table of calls.

pub mod bus;
mod files;
mod numa;

pub use self::{files::Files, numa::Machine};
