//! Clocks: current and highest clocks, performance states, and the reasons for lower clocks.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlDeviceCurrentClockFreqs_v1_t, nvmlDevicePerfModes_v1_t, nvmlViolationTime_t,
};

use super::{
    call::{self, CalledDevice},
    code::{INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, NvmlResult},
    engine::now_micros,
    memory::to_counter,
    nvml,
    wire::{Maybe, Out, chars, mark_of},
};

/// Clock event reasons that the driver supports.
const REASONS: c_ulonglong = 0x1ff;
/// NVML's `NVML_PSTATE_UNKNOWN`.
const NO_STATE: c_uint = 32;
/// Lowest graphics clock, and the step between two clocks, in MHz.
const LOWEST: u32 = 210;
const STEP: u32 = 15;
/// The only performance states of data centre cards: P0 (full speed) and P8 (idle).
const STATES: [c_uint; 2] = [0, 8];

nvml! {
    device nvmlDeviceGetClockInfo: (kind: c_uint, value: Out<c_uint>) |unit|
        value.set(current_clock(unit, kind)?);
    device nvmlDeviceGetClock: (kind: c_uint, id: c_uint, value: Out<c_uint>) |unit| match id {
        0 => value.set(current_clock(unit, kind)?),
        1 => value.set(application(unit, kind)?),
        2 | 3 => value.set(max_clock(unit, kind)?),
        _ => Err(INVALID_ARGUMENT),
    };
    device nvmlDeviceGetMaxClockInfo, nvmlDeviceGetMaxCustomerBoostClock, nvmlDeviceGetDefaultApplicationsClock: (kind: c_uint, value: Out<c_uint>) |unit|
        value.set(max_clock(unit, kind)?);
    device nvmlDeviceGetApplicationsClock: (kind: c_uint, value: Out<c_uint>) |unit|
        value.set(application(unit, kind)?);
    device nvmlDeviceSetApplicationsClocks: (memory: c_uint, graphics: c_uint) |unit| {
        unit.require_card()?;
        let known = memory_clocks(unit).contains(&memory) && graphics_clocks(unit).any(|clock| clock == graphics);
        known.then_some(()).ok_or(INVALID_ARGUMENT)?;
        call::change_card(unit, |gpu, _| { gpu.settings.application_clocks = Some((memory, graphics)); Ok(()) })
    };
    device nvmlDeviceResetApplicationsClocks: () |unit| {
        unit.require_card()?;
        call::change_card(unit, |gpu, _| { gpu.settings.application_clocks = None; Ok(()) })
    };
    device nvmlDeviceGetSupportedMemoryClocks: (count: Out<c_uint>, clocks: Maybe<c_uint>) |unit| {
        unit.require_card()?;
        clocks.write_list(&count, &memory_clocks(unit))
    };
    device nvmlDeviceGetSupportedGraphicsClocks: (memory: c_uint, count: Out<c_uint>, clocks: Maybe<c_uint>) |unit| {
        unit.require_card()?;
        memory_clocks(unit).contains(&memory).then_some(()).ok_or(NOT_FOUND)?;
        clocks.write_list(&count, &graphics_clocks(unit).collect::<Vec<_>>())
    };
    device nvmlDeviceGetCurrentClocksEventReasons, nvmlDeviceGetCurrentClocksThrottleReasons: (reasons: Out<c_ulonglong>) |unit| {
        unit.require_card()?;
        reasons.set(unit.gpu.sensors.clock_reasons)
    };
    device nvmlDeviceGetSupportedClocksEventReasons, nvmlDeviceGetSupportedClocksThrottleReasons: (reasons: Out<c_ulonglong>) |unit| {
        unit.require_card()?;
        reasons.set(REASONS)
    };
    device nvmlDeviceGetPerformanceState, nvmlDeviceGetPowerState: (state: Out<c_uint>) |unit| {
        unit.require_card()?;
        state.set(to_counter(unit.gpu.sensors.performance_state))
    };
    device nvmlDeviceGetSupportedPerformanceStates: (states: Out<c_uint>, size: c_uint) |unit| {
        unit.require_card()?;
        let room = usize::try_from(size).map_err(|_| INVALID_ARGUMENT)? / size_of::<c_uint>();
        if room < STATES.len() {
            return Err(super::code::INSUFFICIENT_SIZE);
        }
        // The rest of the array is filled with "unknown"; NVML has sixteen states at most.
        let rest = std::iter::repeat_n(NO_STATE, room.min(16) - STATES.len());
        states.set_all(&STATES.into_iter().chain(rest).collect::<Vec<_>>())
    };
    device nvmlDeviceGetMinMaxClockOfPState: (kind: c_uint, state: c_uint, min: Out<c_uint>, max: Out<c_uint>) |unit| {
        let top = max_clock(unit, kind)?;
        STATES.contains(&state).then_some(()).ok_or(INVALID_ARGUMENT)?;
        let low = if kind == 2 { top } else { LOWEST.min(top) };
        min.set(low)?;
        max.set(if state == 0 { top } else { low })
    };
    device nvmlDeviceGetAdaptiveClockInfoStatus: (status: Out<c_uint>) |unit| {
        unit.require_card()?;
        status.set(1)
    };
    device nvmlDeviceGetViolationStatus: (policy: c_uint, times: Out<nvmlViolationTime_t>) |unit| {
        unit.require_card()?;
        if !matches!(policy, 0..=5 | 10 | 11) {
            return Err(INVALID_ARGUMENT);
        }
        times.set(nvmlViolationTime_t { referenceTime: now_micros(), violationTime: 0 })
    };
    device nvmlDeviceGetCurrentClockFreqs: (text: Out<nvmlDeviceCurrentClockFreqs_v1_t>) |unit| {
        text.check_version(1)?;
        let (sm, memory) = (current_clock(unit, 1)?, current_clock(unit, 2)?);
        let str_ = chars(&format!("perf={}, nvclock={sm}, memclock={memory}", unit.gpu.sensors.performance_state));
        text.set(nvmlDeviceCurrentClockFreqs_v1_t { version: mark_of::<nvmlDeviceCurrentClockFreqs_v1_t>(1), str_ })
    };
    device nvmlDeviceGetPerformanceModes: (text: Out<nvmlDevicePerfModes_v1_t>) |unit| {
        text.check_version(1)?;
        let (sm, memory) = (max_clock(unit, 1)?, max_clock(unit, 2)?);
        let str_ = chars(&format!("perf=0, nvclock=210, nvclockmin=210, nvclockmax={sm}, memclock={memory}"));
        text.set(nvmlDevicePerfModes_v1_t { version: mark_of::<nvmlDevicePerfModes_v1_t>(1), str_ })
    };
}

fn current_clock(unit: &CalledDevice<'_>, kind: c_uint) -> NvmlResult<c_uint> {
    unit.require_card()?;
    let sm = to_counter(unit.gpu.sensors.clock_sm);
    match kind {
        0 | 1 => Ok(sm),
        2 => Ok(to_counter(unit.gpu.sensors.clock_memory)),
        3 => Ok(unit.model.clocks.video.min(sm)),
        _ => Err(INVALID_ARGUMENT),
    }
}

fn max_clock(unit: &CalledDevice<'_>, kind: c_uint) -> NvmlResult<c_uint> {
    unit.require_card()?;
    match kind {
        0 | 1 => Ok(unit.model.clocks.sm),
        2 => Ok(unit.model.clocks.memory),
        3 => Ok(unit.model.clocks.video),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// Application clock of a kind: as set, or the highest.
fn application(unit: &CalledDevice<'_>, kind: c_uint) -> NvmlResult<c_uint> {
    let default = max_clock(unit, kind)?;
    let Some((memory, graphics)) = unit.gpu.settings.application_clocks else {
        return Ok(default);
    };
    match kind {
        0 | 1 => Ok(graphics),
        2 => Ok(memory),
        _ => Err(NOT_SUPPORTED),
    }
}

/// Memory clocks, highest first: the highest, and the idle one if it differs.
fn memory_clocks(unit: &CalledDevice<'_>) -> Vec<c_uint> {
    let mut clocks = vec![
        unit.model.clocks.memory,
        to_counter(unit.model.idle.clock_memory),
    ];
    clocks.dedup();
    clocks
}

/// Graphics clocks, highest first.
fn graphics_clocks(unit: &CalledDevice<'_>) -> impl Iterator<Item = c_uint> + use<> {
    // A hand-written state may have any number. No card has more steps than this.
    let top = unit.model.clocks.sm.min(10_000);
    (0..).map_while(move |step: u32| {
        let clock = top.checked_sub(step.saturating_mul(STEP))?;
        (clock >= LOWEST.min(top)).then_some(clock)
    })
}
