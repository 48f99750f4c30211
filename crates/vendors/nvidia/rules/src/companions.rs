//! Classes of companions: things of NVIDIA's driver beside the devices.

/// Numbers of IMEX channels whose device node exists.
pub const IMEX_CHANNEL: &str = "imex-channel";
/// Device nodes of GPUDirect Storage.
pub const GDS: &str = "gds";
/// Device nodes of GDRCopy.
pub const GDRCOPY: &str = "gdrcopy";
/// Device nodes for RDMA.
pub const MOFED: &str = "mofed";
/// Names of the resources whose MPS control daemon is up.
pub const MPS: &str = "mps";
