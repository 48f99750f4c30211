//! MIG profiles in NVML's structures, in all versions.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    nvmlComputeInstanceProfileInfo_t, nvmlComputeInstanceProfileInfo_v2_t,
    nvmlComputeInstanceProfileInfo_v3_t, nvmlGpuInstanceProfileInfo_t,
    nvmlGpuInstanceProfileInfo_v2_t, nvmlGpuInstanceProfileInfo_v3_t,
};
use sim_node::state::MigProfile;

use super::{
    code::{NvmlResult, VERSION_MISMATCH},
    partition::multiprocessors,
    wire::{Out, chars, mark_of},
};

/// Profile of a GPU instance in the first structure.
pub(super) fn instance_summary(shape: &MigProfile) -> nvmlGpuInstanceProfileInfo_t {
    nvmlGpuInstanceProfileInfo_t {
        id: shape.id,
        isP2pSupported: 0,
        sliceCount: shape.slices,
        instanceCount: shape.count,
        multiprocessorCount: shape.multiprocessors,
        copyEngineCount: shape.copy,
        decoderCount: shape.decoders,
        encoderCount: 0,
        jpegCount: shape.jpeg,
        ofaCount: shape.ofa,
        memorySizeMB: shape.memory_mib,
    }
}

/// Writes the structure in the version that the caller has marked it with.
pub(super) fn versioned<'a>(
    info: &Out<nvmlGpuInstanceProfileInfo_v2_t>,
    shape: impl FnOnce() -> NvmlResult<&'a MigProfile>,
) -> NvmlResult {
    let newer = info.cast::<nvmlGpuInstanceProfileInfo_v3_t>();
    let is_newer = newer.check_version(3).is_ok();
    if !is_newer && info.check_version(2).is_err() {
        return Err(VERSION_MISMATCH);
    }
    let shape = shape()?;
    let name = chars(&format!("MIG {}", shape.name));
    let plain = instance_summary(shape);
    if is_newer {
        return newer.set(nvmlGpuInstanceProfileInfo_v3_t {
            version: mark_of::<nvmlGpuInstanceProfileInfo_v3_t>(3),
            id: plain.id,
            sliceCount: plain.sliceCount,
            instanceCount: plain.instanceCount,
            multiprocessorCount: plain.multiprocessorCount,
            copyEngineCount: plain.copyEngineCount,
            decoderCount: plain.decoderCount,
            encoderCount: plain.encoderCount,
            jpegCount: plain.jpegCount,
            ofaCount: plain.ofaCount,
            memorySizeMB: plain.memorySizeMB,
            name,
            capabilities: 0,
        });
    }
    info.set(nvmlGpuInstanceProfileInfo_v2_t {
        version: mark_of::<nvmlGpuInstanceProfileInfo_v2_t>(2),
        id: plain.id,
        isP2pSupported: 0,
        sliceCount: plain.sliceCount,
        instanceCount: plain.instanceCount,
        multiprocessorCount: plain.multiprocessorCount,
        copyEngineCount: plain.copyEngineCount,
        decoderCount: plain.decoderCount,
        encoderCount: plain.encoderCount,
        jpegCount: plain.jpegCount,
        ofaCount: plain.ofaCount,
        memorySizeMB: plain.memorySizeMB,
        name,
    })
}

/// Profile of a compute instance with `slices` slices in a GPU instance.
pub(super) fn compute_summary(
    shape: &MigProfile,
    profile: c_uint,
    slices: u32,
) -> nvmlComputeInstanceProfileInfo_t {
    nvmlComputeInstanceProfileInfo_t {
        id: profile,
        sliceCount: slices,
        instanceCount: shape.slices / slices.max(1),
        multiprocessorCount: multiprocessors(shape, slices),
        sharedCopyEngineCount: shape.copy,
        sharedDecoderCount: shape.decoders,
        sharedEncoderCount: 0,
        sharedJpegCount: shape.jpeg,
        sharedOfaCount: shape.ofa,
    }
}

/// [`versioned`] for a compute instance.
pub(super) fn compute_versioned<'a>(
    info: &Out<nvmlComputeInstanceProfileInfo_v2_t>,
    find: impl FnOnce() -> NvmlResult<(&'a MigProfile, c_uint, u32)>,
) -> NvmlResult {
    let newer = info.cast::<nvmlComputeInstanceProfileInfo_v3_t>();
    let is_newer = newer.check_version(3).is_ok();
    if !is_newer && info.check_version(2).is_err() {
        return Err(VERSION_MISMATCH);
    }
    let (shape, profile, slices) = find()?;
    let name = if slices == shape.slices {
        format!("MIG {}", shape.name)
    } else {
        format!("MIG {slices}c.{}", shape.name)
    };
    let plain = compute_summary(shape, profile, slices);
    let older = nvmlComputeInstanceProfileInfo_v2_t {
        version: mark_of::<nvmlComputeInstanceProfileInfo_v2_t>(2),
        id: plain.id,
        sliceCount: plain.sliceCount,
        instanceCount: plain.instanceCount,
        multiprocessorCount: plain.multiprocessorCount,
        sharedCopyEngineCount: plain.sharedCopyEngineCount,
        sharedDecoderCount: plain.sharedDecoderCount,
        sharedEncoderCount: 0,
        sharedJpegCount: plain.sharedJpegCount,
        sharedOfaCount: plain.sharedOfaCount,
        name: chars(&name),
    };
    if !is_newer {
        return info.set(older);
    }
    newer.set(nvmlComputeInstanceProfileInfo_v3_t {
        version: mark_of::<nvmlComputeInstanceProfileInfo_v3_t>(3),
        id: older.id,
        sliceCount: older.sliceCount,
        instanceCount: older.instanceCount,
        multiprocessorCount: older.multiprocessorCount,
        sharedCopyEngineCount: older.sharedCopyEngineCount,
        sharedDecoderCount: older.sharedDecoderCount,
        sharedEncoderCount: 0,
        sharedJpegCount: older.sharedJpegCount,
        sharedOfaCount: older.sharedOfaCount,
        name: older.name,
        capabilities: 0,
    })
}
