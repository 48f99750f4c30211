//! Our side of the kubelet's gRPC contracts: registration by evidence, the device plugin servers,
//! the CDI spec files, and the pod resources client. Everything served here is read from offers
//! that somebody else keeps up to date; nothing in this crate knows a driver.

pub mod cdi;
pub mod front;
pub mod list;
pub mod pod_resources;
mod socket;
pub mod status;

pub use self::status::Status;
