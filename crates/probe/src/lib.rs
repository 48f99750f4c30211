//! The probe boundary: the protocol spoken over a child's standard streams, the backends that
//! run in the child, and the supervisor that keeps the child and survives it.

pub mod child;
pub mod nvidia;
pub mod protocol;
#[cfg(feature = "sample")]
pub mod sample;
pub mod supervisor;
pub mod sysfs;

mod sighting;
mod tree;

pub use self::sighting::{Release, Released, Sighting, Update};
