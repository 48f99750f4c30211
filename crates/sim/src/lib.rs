//! A simulated GPU node: a driver library with NVML's real C ABI, the host files around it, and a
//! kubelet, for the demo, the tests and the benchmarks.
//!
//! A node is a folder. [`Node`] creates and changes it; the shared library built from this crate
//! reads it on every call, so that any process that loaded `libnvidia-ml.so.1` from the folder
//! sees each change at once.

mod bus;
pub mod kubelet;
pub mod library;
pub mod profile;
pub mod state;

mod abi;
mod node;
mod store;
mod target;
mod tree;

pub use bus::{BusId, InvalidBusId};
pub use node::{EccKind, Error, GpuInfo, Holders, MigInfo, NewGpu, Node};
pub use profile::Profile;
pub use state::Effect;
pub use target::Target;
