//! Memory: how much there is, its errors, and what was done about them.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlBAR1Memory_t, nvmlEccErrorCounts_t, nvmlMemory_t, nvmlMemory_v2_t,
};

use super::{
    call::Unit,
    code::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED},
    nvml,
    wire::{Out, mark_of},
};

/// The first architecture that replaces rows instead of retiring pages: Ampere.
const REPLACES_ROWS: u32 = 7;
/// NVML's place of device memory.
const DEVICE_MEMORY: u32 = 2;

nvml! {
    device nvmlDeviceGetMemoryInfo: (info: Out<nvmlMemory_t>) |unit| {
        let memory = memory(unit);
        info.set(nvmlMemory_t {
            total: memory.total,
            free: memory.free,
            used: memory.total - memory.free,
        })
    };
    device nvmlDeviceGetMemoryInfo_v2: (info: Out<nvmlMemory_v2_t>) |unit| {
        info.check(2)?;
        info.set(memory(unit))
    };
    device nvmlDeviceGetBAR1MemoryInfo: (info: Out<nvmlBAR1Memory_t>) |unit| {
        unit.whole()?;
        let total = bytes(unit.model.memory_mib).checked_next_power_of_two().unwrap_or(0);
        let used = total.min(1 << 20);
        info.set(nvmlBAR1Memory_t { bar1Total: total, bar1Free: total - used, bar1Used: used })
    };
    device nvmlDeviceGetEccMode: (current: Out<c_uint>, pending: Out<c_uint>) |unit| {
        unit.whole()?;
        current.set(1)?;
        pending.set(1)
    };
    device nvmlDeviceGetDefaultEccMode: (mode: Out<c_uint>) |unit| {
        unit.whole()?;
        mode.set(1)
    };
    device nvmlDeviceGetTotalEccErrors: (kind: c_uint, counter: c_uint, count: Out<c_ulonglong>) |unit|
        count.set(errors(unit, kind, counter)?);
    device nvmlDeviceGetDetailedEccErrors: (kind: c_uint, counter: c_uint, counts: Out<nvmlEccErrorCounts_t>) |unit|
        counts.set(nvmlEccErrorCounts_t {
            l1Cache: 0,
            l2Cache: 0,
            deviceMemory: errors(unit, kind, counter)?,
            registerFile: 0,
        });
    device nvmlDeviceGetMemoryErrorCounter: (kind: c_uint, counter: c_uint, place: c_uint, count: Out<c_ulonglong>) |unit| {
        let all = errors(unit, kind, counter)?;
        match place {
            DEVICE_MEMORY => count.set(all),
            0..=7 => count.set(0),
            _ => Err(INVALID_ARGUMENT),
        }
    };
    device nvmlDeviceGetRemappedRows: (
        corrected: Out<c_uint>,
        uncorrected: Out<c_uint>,
        pending: Out<c_uint>,
        failed: Out<c_uint>,
    ) |unit| {
        replaces(unit)?;
        let sensors = &unit.gpu.sensors;
        corrected.set(small(sensors.remapped_corrected))?;
        uncorrected.set(small(sensors.remapped_uncorrected))?;
        pending.set(small(sensors.remap_pending))?;
        failed.set(small(sensors.remap_failed))
    };
    device nvmlDeviceGetRetiredPagesPendingStatus: (pending: Out<c_uint>) |unit| {
        retires(unit)?;
        pending.set(c_uint::from(unit.gpu.sensors.retired_pending != 0))
    };
    device nvmlDeviceGetRetiredPages: (_cause: c_uint, count: Out<c_uint>, _addresses: Out<c_ulonglong>) |unit| {
        retires(unit)?;
        count.set(0)
    };
    device nvmlDeviceGetRetiredPages_v2: (
        _cause: c_uint,
        count: Out<c_uint>,
        _addresses: Out<c_ulonglong>,
        _times: Out<c_ulonglong>,
    ) |unit| {
        retires(unit)?;
        count.set(0)
    };
}

fn memory(unit: &Unit<'_>) -> nvmlMemory_v2_t {
    let (total, reserved, used) = match unit.mig {
        None => (
            unit.model.memory_mib,
            unit.model.reserved_mib,
            unit.gpu.sensors.memory_used,
        ),
        Some((_, mig, shape)) => (shape.memory_mib, 0, mig.memory_used_mib),
    };
    let (total, reserved) = (bytes(total), bytes(reserved).min(bytes(total)));
    let used = bytes(used).min(total - reserved);
    nvmlMemory_v2_t {
        version: mark_of::<nvmlMemory_v2_t>(2),
        total,
        reserved,
        free: total - reserved - used,
        used,
    }
}

fn bytes(mib: u64) -> u64 {
    mib.saturating_mul(1 << 20)
}

/// A counter in the width that NVML gives it.
pub(super) fn small(value: u64) -> c_uint {
    c_uint::try_from(value).unwrap_or(c_uint::MAX)
}

/// The count of one kind of memory errors. The simulated driver was never reloaded, so both
/// counters, volatile and aggregate, are the same.
fn errors(unit: &Unit<'_>, kind: c_uint, counter: c_uint) -> Answer<u64> {
    unit.whole()?;
    match (kind, counter) {
        (0, 0 | 1) => Ok(unit.gpu.sensors.ecc_corrected),
        (1, 0 | 1) => Ok(unit.gpu.sensors.ecc_uncorrected),
        _ => Err(INVALID_ARGUMENT),
    }
}

fn replaces(unit: &Unit<'_>) -> Answer {
    unit.whole()?;
    let able = unit.model.architecture >= REPLACES_ROWS;
    able.then_some(()).ok_or(NOT_SUPPORTED)
}

fn retires(unit: &Unit<'_>) -> Answer {
    unit.whole()?;
    let able = unit.model.architecture < REPLACES_ROWS;
    able.then_some(()).ok_or(NOT_SUPPORTED)
}
