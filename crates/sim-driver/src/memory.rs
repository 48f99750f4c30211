//! Memory: sizes, ECC errors, row remapping and page retirement.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlBAR1Memory_t, nvmlEccErrorCounts_t, nvmlEccSramErrorStatus_v1_t, nvmlMemory_t,
    nvmlMemory_v2_t, nvmlRepairStatus_v1_t, nvmlRowRemapperHistogramValues_t,
};

use super::{
    call::CalledDevice,
    code::{INVALID_ARGUMENT, NOT_SUPPORTED, NvmlResult},
    nvml,
    setting::corrects,
    wire::{Maybe, Out, mark_of},
};

/// First architecture that remaps rows in place of retiring pages: Ampere.
const REPLACES_ROWS: u32 = 7;
/// NVML's memory location for device memory.
const DEVICE_MEMORY: u32 = 2;
/// NVML's memory location for on-chip memory.
const SRAM: u32 = 7;
/// Number of memory banks with spare rows.
const BANKS: c_uint = 640;
/// Most pages that a card can retire; NVIDIA replaces a card with more.
const MAX_PAGES: u64 = 64;

nvml! {
    device nvmlDeviceGetMemoryInfo: (info: Out<nvmlMemory_t>) |unit| {
        let memory = memory_info(unit);
        info.set(nvmlMemory_t {
            total: memory.total,
            free: memory.free,
            used: memory.total - memory.free,
        })
    };
    device nvmlDeviceGetMemoryInfo_v2: (info: Out<nvmlMemory_v2_t>) |unit| {
        info.check_version(2)?;
        info.set(memory_info(unit))
    };
    device nvmlDeviceGetBAR1MemoryInfo: (info: Out<nvmlBAR1Memory_t>) |unit| {
        unit.require_card()?;
        let total = unit.model.bar1_bytes();
        let used = total.min(1 << 20);
        info.set(nvmlBAR1Memory_t { bar1Total: total, bar1Free: total - used, bar1Used: used })
    };
    device nvmlDeviceGetTotalEccErrors: (kind: c_uint, counter: c_uint, count: Out<c_ulonglong>) |unit|
        count.set(ecc_errors(unit, kind, counter)?);
    device nvmlDeviceGetDetailedEccErrors: (kind: c_uint, counter: c_uint, counts: Out<nvmlEccErrorCounts_t>) |unit|
        counts.set(nvmlEccErrorCounts_t {
            l1Cache: 0,
            l2Cache: 0,
            deviceMemory: ecc_errors(unit, kind, counter)?,
            registerFile: 0,
        });
    device nvmlDeviceGetMemoryErrorCounter: (kind: c_uint, counter: c_uint, place: c_uint, count: Out<c_ulonglong>) |unit| {
        if let Some((_, mig, _)) = unit.mig {
            // A MIG device has counters only for uncorrected errors in its part of the SRAM.
            let told = (kind, counter, place) == (1, 0, SRAM) && unit.model.ecc;
            return told.then_some(()).ok_or(NOT_SUPPORTED).and_then(|()| count.set(mig.ecc_uncorrected));
        }
        let all = ecc_errors(unit, kind, counter)?;
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
        corrected.set(to_counter(sensors.remapped_corrected))?;
        uncorrected.set(to_counter(sensors.remapped_uncorrected))?;
        pending.set(to_counter(sensors.remap_pending))?;
        failed.set(to_counter(sensors.remap_failed))
    };
    device nvmlDeviceGetRetiredPagesPendingStatus: (pending: Out<c_uint>) |unit| {
        retires(unit)?;
        pending.set(c_uint::from(unit.gpu.sensors.retired_pending != 0))
    };
    device nvmlDeviceGetRetiredPages: (cause: c_uint, count: Out<c_uint>, addresses: Maybe<c_ulonglong>) |unit|
        addresses.write_list(&count, &retired_pages(unit, cause)?);
    device nvmlDeviceGetRetiredPages_v2: (cause: c_uint, count: Out<c_uint>, addresses: Maybe<c_ulonglong>, times: Maybe<c_ulonglong>) |unit| {
        let pages = retired_pages(unit, cause)?;
        let room = count.get()?;
        addresses.write_list(&count, &pages)?;
        times.non_null().map_or(Ok(()), |_| times.fill_exact(room, &vec![0; pages.len()]))
    };
    device nvmlDeviceGetRowRemapperHistogram: (values: Out<nvmlRowRemapperHistogramValues_t>) |unit| {
        replaces(unit)?;
        let sensors = &unit.gpu.sensors;
        // Each remapped row is counted for a bank of its own, as long as there are banks.
        let replaced = sensors.remapped_corrected.saturating_add(sensors.remapped_uncorrected);
        let (high, none) = (to_counter(replaced).min(BANKS), c_uint::from(sensors.remap_failed != 0));
        values.set(nvmlRowRemapperHistogramValues_t { max: BANKS - high.max(none), high: high.saturating_sub(none), partial: 0, low: 0, none })
    };
    device nvmlDeviceGetSramEccErrorStatus: (status: Out<nvmlEccSramErrorStatus_v1_t>) |unit| {
        status.check_version(1)?;
        corrects(unit)?;
        replaces(unit)?;
        // All errors are in device memory, so the SRAM counters are zero.
        status.set(nvmlEccSramErrorStatus_v1_t {
            version: mark_of::<nvmlEccSramErrorStatus_v1_t>(1),
            aggregateUncParity: 0,
            aggregateUncSecDed: 0,
            aggregateCor: 0,
            volatileUncParity: 0,
            volatileUncSecDed: 0,
            volatileCor: 0,
            aggregateUncBucketL2: 0,
            aggregateUncBucketSm: 0,
            aggregateUncBucketPcie: 0,
            aggregateUncBucketMcu: 0,
            aggregateUncBucketOther: 0,
            bThresholdExceeded: 0,
        })
    };
    device nvmlDeviceGetRepairStatus: (status: Out<nvmlRepairStatus_v1_t>) |unit| {
        status.check_version(1)?;
        replaces(unit)?;
        status.set(nvmlRepairStatus_v1_t { version: mark_of::<nvmlRepairStatus_v1_t>(1), bChannelRepairPending: 0, bTpcRepairPending: 0 })
    };
}

fn memory_info(unit: &CalledDevice<'_>) -> nvmlMemory_v2_t {
    let (total, reserved, used) = match unit.mig {
        None => (
            unit.model.memory_mib,
            unit.model.reserved_mib,
            unit.gpu.sensors.memory_used,
        ),
        Some((_, mig, shape)) => (shape.memory_mib, 0, mig.memory_used_mib),
    };
    let (total, reserved) = (
        mib_to_bytes(total),
        mib_to_bytes(reserved).min(mib_to_bytes(total)),
    );
    let used = mib_to_bytes(used).min(total - reserved);
    nvmlMemory_v2_t {
        version: mark_of::<nvmlMemory_v2_t>(2),
        total,
        reserved,
        free: total - reserved - used,
        used,
    }
}

/// Bytes from MiB, in which the state counts.
pub(super) fn mib_to_bytes(mib: u64) -> u64 {
    mib.saturating_mul(1 << 20)
}

/// Counter in the 32 bits of NVML's parameters; saturates.
pub(super) fn to_counter(value: u64) -> c_uint {
    c_uint::try_from(value).unwrap_or(c_uint::MAX)
}

/// Number of ECC errors of one kind: since the last reset, or over the lifetime.
fn ecc_errors(unit: &CalledDevice<'_>, kind: c_uint, counter: c_uint) -> NvmlResult<u64> {
    corrects(unit)?;
    let sensors = &unit.gpu.sensors;
    match (kind, counter) {
        (0, 0) => Ok(sensors.ecc_corrected),
        (0, 1) => Ok(sensors.ever_corrected()),
        (1, 0) => Ok(sensors.ecc_uncorrected),
        (1, 1) => Ok(sensors.ever_uncorrected()),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// Addresses of the retired pages; all of them had uncorrected errors.
fn retired_pages(unit: &CalledDevice<'_>, cause: c_uint) -> NvmlResult<Vec<c_ulonglong>> {
    retires(unit)?;
    let count = match cause {
        0 => 0,
        1 => unit.gpu.sensors.retired_pages.min(MAX_PAGES),
        _ => return Err(INVALID_ARGUMENT),
    };
    Ok((1..=count).map(|page| page << 16).collect())
}

fn replaces(unit: &CalledDevice<'_>) -> NvmlResult {
    unit.require_card()?;
    let able = unit.model.architecture >= REPLACES_ROWS;
    able.then_some(()).ok_or(NOT_SUPPORTED)
}

fn retires(unit: &CalledDevice<'_>) -> NvmlResult {
    unit.require_card()?;
    let able = unit.model.ecc && unit.model.architecture < REPLACES_ROWS;
    able.then_some(()).ok_or(NOT_SUPPORTED)
}
