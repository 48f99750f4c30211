//! Modes that an administrator sets. They are stored in the node's folder and shared by all
//! processes.

use std::ffi::c_uint;

use sim_node::state::NodePlatform;

use super::{
    call::{self, CalledDevice},
    code::{INVALID_ARGUMENT, NOT_SUPPORTED, NvmlResult},
    nvml,
    wire::Out,
};

nvml! {
    device nvmlDeviceGetPersistenceMode: (mode: Out<c_uint>) |unit| {
        unit.require_card()?;
        mode.set(c_uint::from(unit.gpu.settings.persistence.unwrap_or(true)))
    };
    device nvmlDeviceSetPersistenceMode: (mode: c_uint) |unit| {
        unit.require_card()?;
        let on = switch(mode)?;
        call::change_card(unit, |gpu, _| { gpu.settings.persistence = Some(on); Ok(()) })
    };
    device nvmlDeviceGetComputeMode: (mode: Out<c_uint>) |unit| mode.set(unit.gpu.settings.compute_mode);
    device nvmlDeviceSetComputeMode: (mode: c_uint) |unit| {
        unit.require_card()?;
        match mode {
            0 | 2 | 3 => call::change_card(unit, |gpu, _| { gpu.settings.compute_mode = mode; Ok(()) }),
            // `EXCLUSIVE_THREAD` was removed with CUDA 4.
            1 => Err(NOT_SUPPORTED),
            _ => Err(INVALID_ARGUMENT),
        }
    };
    device nvmlDeviceGetEccMode: (current: Out<c_uint>, pending: Out<c_uint>) |unit| {
        corrects(unit)?;
        current.set(1)?;
        pending.set(c_uint::from(unit.gpu.settings.ecc.unwrap_or(true)))
    };
    device nvmlDeviceGetDefaultEccMode: (mode: Out<c_uint>) |unit| {
        corrects(unit)?;
        mode.set(1)
    };
    device nvmlDeviceSetEccMode: (mode: c_uint) |unit| {
        corrects(unit)?;
        let on = switch(mode)?;
        call::change_card(unit, |gpu, _| { gpu.settings.ecc = Some(on); Ok(()) })
    };
    device nvmlDeviceClearEccErrorCounts: (counter: c_uint) |unit| {
        corrects(unit)?;
        switch(counter)?;
        call::change_card(unit, |gpu, _| {
            gpu.sensors.ecc_corrected = 0;
            gpu.sensors.ecc_uncorrected = 0;
            Ok(())
        })
    };
    device nvmlDeviceGetVirtualizationMode: (mode: Out<c_uint>) |unit|
        mode.set(if unit.state.machine.platform == NodePlatform::Vgpu { 2 } else { 0 });
    device nvmlDeviceGetDisplayMode, nvmlDeviceGetDisplayActive: (mode: Out<c_uint>) |unit| {
        unit.require_card()?;
        mode.set(0)
    };
    device nvmlDeviceGetAPIRestriction: (what: c_uint, restricted: Out<c_uint>) |unit| {
        unit.require_card()?;
        match what {
            0 => restricted.set(0),
            1 => Err(NOT_SUPPORTED),
            _ => Err(INVALID_ARGUMENT),
        }
    };
}

/// Fails unless the card's memory has error correction.
pub(super) fn corrects(unit: &CalledDevice<'_>) -> NvmlResult {
    unit.require_card()?;
    unit.model.ecc.then_some(()).ok_or(NOT_SUPPORTED)
}

/// Reads NVML's numbers for off and on.
pub(super) fn switch(mode: c_uint) -> NvmlResult<bool> {
    match mode {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(INVALID_ARGUMENT),
    }
}
