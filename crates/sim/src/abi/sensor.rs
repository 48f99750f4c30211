//! What a card measures, its limits and its modes.

use std::ffi::{c_uint, c_ulonglong, c_void};

use nvml_wrapper_sys::bindings::{nvmlTemperature_v1_t, nvmlUtilization_t};

use super::{
    call::Unit,
    code::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED},
    memory::small,
    nvml,
    wire::{Out, mark_of},
};

/// The reasons for lower clocks that the driver knows.
const REASONS: c_ulonglong = 0x1ff;

nvml! {
    device nvmlDeviceGetTemperature: (sensor: c_uint, value: Out<c_uint>) |unit| {
        unit.whole()?;
        if sensor != 0 {
            return Err(INVALID_ARGUMENT);
        }
        value.set(small(unit.gpu.sensors.temperature))
    };
    device nvmlDeviceGetTemperatureV: (value: Out<nvmlTemperature_v1_t>) |unit| {
        value.check(1)?;
        unit.whole()?;
        if value.get()?.sensorType != 0 {
            return Err(INVALID_ARGUMENT);
        }
        value.set(nvmlTemperature_v1_t {
            version: mark_of::<nvmlTemperature_v1_t>(1),
            sensorType: 0,
            temperature: i32::try_from(unit.gpu.sensors.temperature).unwrap_or(i32::MAX),
        })
    };
    device nvmlDeviceGetTemperatureThreshold: (kind: c_uint, value: Out<c_uint>) |unit| {
        unit.whole()?;
        let limits = unit.model.thresholds;
        match kind {
            0 => value.set(limits.shutdown),
            1 => value.set(limits.slowdown),
            2 if unit.gpu.sensors.memory_temperature > 0 => value.set(limits.slowdown),
            3 => value.set(limits.max),
            2 | 4..=7 => Err(NOT_SUPPORTED),
            _ => Err(INVALID_ARGUMENT),
        }
    };
    device nvmlDeviceGetPowerUsage: (value: Out<c_uint>) |unit| {
        unit.whole()?;
        value.set(small(unit.gpu.sensors.power))
    };
    device nvmlDeviceGetPowerManagementMode: (mode: Out<c_uint>) |unit| {
        unit.whole()?;
        mode.set(1)
    };
    device nvmlDeviceGetPowerManagementLimit, nvmlDeviceGetPowerManagementDefaultLimit, nvmlDeviceGetEnforcedPowerLimit: (limit: Out<c_uint>) |unit| {
        unit.whole()?;
        limit.set(milliwatts(unit.model.power.max))
    };
    device nvmlDeviceGetPowerManagementLimitConstraints: (min: Out<c_uint>, max: Out<c_uint>) |unit| {
        unit.whole()?;
        min.set(milliwatts(unit.model.power.min))?;
        max.set(milliwatts(unit.model.power.max))
    };
    device nvmlDeviceGetUtilizationRates: (value: Out<nvmlUtilization_t>) |unit| {
        // With MIG mode on there is no figure for the card, nor for a MIG device.
        if unit.gpu.mig_enabled {
            return Err(NOT_SUPPORTED);
        }
        let sensors = &unit.gpu.sensors;
        value.set(nvmlUtilization_t {
            gpu: small(sensors.utilization),
            memory: small(sensors.memory_utilization),
        })
    };
    device nvmlDeviceGetEncoderUtilization, nvmlDeviceGetDecoderUtilization: (value: Out<c_uint>, period: Out<c_uint>) |unit| {
        unit.whole()?;
        value.set(0)?;
        period.set(167_000)
    };
    device nvmlDeviceGetClockInfo: (kind: c_uint, value: Out<c_uint>) |unit|
        value.set(clock(unit, kind)?);
    device nvmlDeviceGetClock: (kind: c_uint, id: c_uint, value: Out<c_uint>) |unit| match id {
        0 => value.set(clock(unit, kind)?),
        1..=3 => value.set(max_clock(unit, kind)?),
        _ => Err(INVALID_ARGUMENT),
    };
    device nvmlDeviceGetMaxClockInfo, nvmlDeviceGetMaxCustomerBoostClock, nvmlDeviceGetApplicationsClock, nvmlDeviceGetDefaultApplicationsClock: (kind: c_uint, value: Out<c_uint>) |unit| value.set(max_clock(unit, kind)?);
    device nvmlDeviceGetCurrentClocksEventReasons, nvmlDeviceGetCurrentClocksThrottleReasons: (reasons: Out<c_ulonglong>) |unit| {
        unit.whole()?;
        reasons.set(unit.gpu.sensors.clock_reasons)
    };
    device nvmlDeviceGetSupportedClocksEventReasons, nvmlDeviceGetSupportedClocksThrottleReasons: (reasons: Out<c_ulonglong>) |unit| {
        unit.whole()?;
        reasons.set(REASONS)
    };
    device nvmlDeviceGetPerformanceState, nvmlDeviceGetPowerState: (state: Out<c_uint>) |unit| {
        unit.whole()?;
        state.set(small(unit.gpu.sensors.performance_state))
    };
    device nvmlDeviceGetCurrPcieLinkGeneration: (value: Out<c_uint>) |unit| {
        unit.whole()?;
        value.set(small(unit.gpu.sensors.pcie_generation))
    };
    device nvmlDeviceGetCurrPcieLinkWidth: (value: Out<c_uint>) |unit| {
        unit.whole()?;
        value.set(small(unit.gpu.sensors.pcie_width))
    };
    device nvmlDeviceGetMaxPcieLinkGeneration, nvmlDeviceGetGpuMaxPcieLinkGeneration: (value: Out<c_uint>) |unit| {
        unit.whole()?;
        value.set(unit.model.pcie_generation)
    };
    device nvmlDeviceGetMaxPcieLinkWidth: (value: Out<c_uint>) |unit| {
        unit.whole()?;
        value.set(16)
    };
    device nvmlDeviceGetPcieReplayCounter: (value: Out<c_uint>) |unit| {
        unit.whole()?;
        value.set(small(unit.gpu.sensors.pcie_replays))
    };
    device nvmlDeviceGetPersistenceMode: (mode: Out<c_uint>) |unit| {
        unit.whole()?;
        mode.set(1)
    };
    device nvmlDeviceGetDisplayMode, nvmlDeviceGetDisplayActive: (mode: Out<c_uint>) |unit| {
        unit.whole()?;
        mode.set(0)
    };
    device nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlDeviceGetMPSComputeRunningProcesses, nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlDeviceGetMPSComputeRunningProcesses_v3: (count: Out<c_uint>, _processes: Out<c_void>) |_unit| count.set(0);
}

fn milliwatts(watts: u32) -> c_uint {
    watts.saturating_mul(1000)
}

fn clock(unit: &Unit<'_>, kind: c_uint) -> Answer<c_uint> {
    unit.whole()?;
    match kind {
        0 | 1 => Ok(small(unit.gpu.sensors.clock_sm)),
        2 => Ok(small(unit.gpu.sensors.clock_memory)),
        3 => Ok(unit
            .model
            .clocks
            .video
            .min(small(unit.gpu.sensors.clock_sm))),
        _ => Err(INVALID_ARGUMENT),
    }
}

fn max_clock(unit: &Unit<'_>, kind: c_uint) -> Answer<c_uint> {
    unit.whole()?;
    match kind {
        0 | 1 => Ok(unit.model.clocks.sm),
        2 => Ok(unit.model.clocks.memory),
        3 => Ok(unit.model.clocks.video),
        _ => Err(INVALID_ARGUMENT),
    }
}
