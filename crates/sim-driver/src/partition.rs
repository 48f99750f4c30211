//! MIG devices and their cards.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::nvmlDeviceAttributes_t;
use sim_node::state::{MigDevice, MigProfile};

use super::{
    call::{self, CalledDevice},
    code::{IN_USE, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, NvmlResult, SUCCESS},
    identity::device_handle,
    nvml,
    wire::{Handle, Out},
};

/// Most MIG devices on one card.
const MAX_DEVICES: c_uint = 7;

nvml! {
    device nvmlDeviceGetMigMode: (current: Out<c_uint>, pending: Out<c_uint>) |unit| {
        capable(unit)?;
        current.set(c_uint::from(unit.gpu.mig_enabled))?;
        pending.set(c_uint::from(unit.gpu.mig_enabled))
    };
    device nvmlDeviceGetMaxMigDeviceCount: (count: Out<c_uint>) |unit|
        count.set(if unit.model.mig.is_empty() { 0 } else { MAX_DEVICES });
    device nvmlDeviceGetMigDeviceHandleByIndex: (index: c_uint, device: Out<Handle>) |unit| {
        capable(unit)?;
        if index >= MAX_DEVICES {
            return Err(INVALID_ARGUMENT);
        }
        let position = usize::try_from(index).map_err(|_| INVALID_ARGUMENT)?;
        let place = (unit.index, Some(position));
        let mig = CalledDevice::at_place(unit.state, place).map_err(|_| NOT_FOUND)?;
        device.set(device_handle(&mig))
    };
    device nvmlDeviceIsMigDeviceHandle: (is: Out<c_uint>) |unit|
        is.set(c_uint::from(unit.mig.is_some()));
    device nvmlDeviceGetDeviceHandleFromMigDeviceHandle: (card: Out<Handle>) |unit| {
        require_mig_device(unit)?;
        card.set(device_handle(&CalledDevice { mig: None, ..*unit }))
    };
    device nvmlDeviceGetGpuInstanceId: (id: Out<c_uint>) |unit| id.set(require_mig_device(unit)?.0.gi);
    device nvmlDeviceGetComputeInstanceId: (id: Out<c_uint>) |unit| id.set(require_mig_device(unit)?.0.ci);
    device nvmlDeviceSetMigMode: (mode: c_uint, status: Out<c_uint>) |unit| {
        capable(unit)?;
        if mode > 1 {
            return Err(INVALID_ARGUMENT);
        }
        call::change_card(unit, |gpu, _| {
            if mode == 0 && !(gpu.migs.is_empty() && gpu.instances.is_empty()) {
                return Err(IN_USE);
            }
            gpu.mig_enabled = mode == 1;
            Ok(())
        })?;
        status.set(SUCCESS)
    };
    device nvmlDeviceGetAttributes: (attributes: Out<[c_uint; 6]>) |unit| {
        let (mig, shape) = require_mig_device(unit).map_err(|_| NOT_SUPPORTED)?;
        let processors = multiprocessors(shape, mig.slices);
        attributes.set([processors, shape.copy, shape.decoders, 0, shape.jpeg, shape.ofa])
    };
    device nvmlDeviceGetAttributes_v2: (attributes: Out<nvmlDeviceAttributes_t>) |unit| {
        let (mig, shape) = require_mig_device(unit).map_err(|_| NOT_SUPPORTED)?;
        attributes.set(nvmlDeviceAttributes_t {
            multiprocessorCount: multiprocessors(shape, mig.slices),
            sharedCopyEngineCount: shape.copy,
            sharedDecoderCount: shape.decoders,
            sharedEncoderCount: 0,
            sharedJpegCount: shape.jpeg,
            sharedOfaCount: shape.ofa,
            gpuInstanceSliceCount: shape.slices,
            computeInstanceSliceCount: mig.slices,
            memorySizeMB: shape.memory_mib,
        })
    };
}

/// Share of `slices` compute slices in a GPU instance's multiprocessors.
pub(super) fn multiprocessors(shape: &MigProfile, slices: u32) -> c_uint {
    let all = u64::from(shape.multiprocessors) * u64::from(slices);
    c_uint::try_from(all / u64::from(shape.slices.max(1))).unwrap_or(c_uint::MAX)
}

/// Fails unless the card's MIG mode is on.
pub(super) fn enabled(unit: &CalledDevice<'_>) -> NvmlResult {
    capable(unit)?;
    unit.gpu.mig_enabled.then_some(()).ok_or(NOT_SUPPORTED)
}

/// Fails for a card without MIG support, and for a MIG device.
pub(super) fn capable(unit: &CalledDevice<'_>) -> NvmlResult {
    unit.require_card()?;
    (!unit.model.mig.is_empty())
        .then_some(())
        .ok_or(NOT_SUPPORTED)
}

fn require_mig_device<'a>(unit: &CalledDevice<'a>) -> NvmlResult<(&'a MigDevice, &'a MigProfile)> {
    let (_, mig, shape) = unit.mig.ok_or(INVALID_ARGUMENT)?;
    Ok((mig, shape))
}
