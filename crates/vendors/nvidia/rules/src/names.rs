//! Names of attributes that only NVIDIA's devices have.

use model::{AttributeName, Device, Version};

/// CUDA compute capability, a version.
pub const COMPUTE_CAPABILITY: AttributeName = AttributeName::from_static("cudaComputeCapability");
/// Id of the GPU instance of a MIG device.
pub const GPU_INSTANCE: AttributeName = AttributeName::from_static("gpuInstance");
/// Id of the compute instance of a MIG device.
pub const COMPUTE_INSTANCE: AttributeName = AttributeName::from_static("computeInstance");

/// Returns the CUDA compute capability of a device, if known.
pub fn compute_capability(device: &Device) -> Option<&Version> {
    device.attributes.get(&COMPUTE_CAPABILITY)?.as_version()
}
