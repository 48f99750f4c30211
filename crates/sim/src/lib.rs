//! A simulated GPU node: a driver library with NVML's real C ABI, the host files around it, and a
//! kubelet, for the demo, the tests and the benchmarks.
//!
//! A node is a folder. [`Node`] creates and changes it. The driver library in the folder reads the
//! folder on every call, so each process that loaded this `libnvidia-ml.so.1` sees a change at
//! once. The crate `sim_node` defines the files of the folder.

pub mod kubelet;
pub mod library;
pub mod profile;

mod node;
mod scratch;
mod target;

pub use node::{CardHolders, EccKind, Error, GpuInfo, MigInfo, NewGpu, Node};
pub use profile::NodeProfile;
pub use scratch::{ScratchNode, scratch};
pub use sim_node::{
    BusId, InvalidBusId,
    state::{self, Effect},
};
pub use target::DeviceTarget;
