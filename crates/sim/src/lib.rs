//! A simulated GPU node: a driver library with NVML's real C ABI, the host files around it, and a
//! kubelet, for the demo, the tests and the benchmarks.
//!
//! A node is a folder. [`Node`] creates and changes it; the driver library in it reads
//! it on every call, so that any process that loaded `libnvidia-ml.so.1` from the folder sees each
//! change at once. What is in the folder is defined by the crate sim-node.

pub mod kubelet;
pub mod library;
pub mod profile;

mod node;
mod scratch;
mod target;

pub use node::{EccKind, Error, GpuInfo, Holders, MigInfo, NewGpu, Node};
pub use profile::Profile;
pub use scratch::{Scratch, scratch};
pub use sim_node::{
    BusId, InvalidBusId,
    state::{self, Effect},
};
pub use target::Target;
