//! Names of facts that only NVIDIA's devices have.

use model::{AttributeName, Device, Version};

/// The CUDA compute capability, a version.
pub const COMPUTE_CAPABILITY: AttributeName = AttributeName::known("cudaComputeCapability");
/// The GPU instance of a MIG device.
pub const GPU_INSTANCE: AttributeName = AttributeName::known("gpuInstance");
/// The compute instance of a MIG device.
pub const COMPUTE_INSTANCE: AttributeName = AttributeName::known("computeInstance");

/// The CUDA compute capability of a device, where it is known.
pub fn compute_capability(device: &Device) -> Option<&Version> {
    device.attributes.get(&COMPUTE_CAPABILITY)?.as_version()
}
