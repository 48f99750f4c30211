//! Our side of the kubelet's gRPC APIs: registration by evidence, the device plugin servers, the
//! CDI spec files, and the pod resources client. Every answer to the kubelet is read from the
//! newest offers, which the agent passes in. No code of this crate calls a driver.

pub mod cdi;
pub mod front;
pub mod list;
pub mod pod_resources;
mod socket;
pub mod status;

pub use self::status::Status;
