//! The probe boundary: the protocol spoken over a child's standard streams, the loop that runs
//! a vendor's backend in the child, the files of the host that every backend reads, and the
//! supervisor that keeps the child and survives it.

pub mod check;
pub mod child;
pub mod exec;
pub mod protocol;
#[cfg(feature = "sample")]
pub mod sample;
pub mod supervisor;
pub mod sysfs;

mod calls;
mod sighting;

pub use self::{
    calls::{Calls, Overdue, Ticket},
    sighting::{Release, Released, Sighting, Update},
};
