//! Engines and their utilisation.

use std::{
    ffi::{c_uint, c_ulonglong},
    time::{SystemTime, UNIX_EPOCH},
};

use nvml_wrapper_sys::bindings::{
    nvmlEncoderSessionInfo_t, nvmlFBCSessionInfo_t, nvmlFBCStats_t, nvmlGpmSupport_t,
    nvmlGpuDynamicPstatesInfo_st__bindgen_ty_1 as Busy, nvmlGpuDynamicPstatesInfo_t, nvmlSample_t,
    nvmlUtilization_t, nvmlValue_t, nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT as UNSIGNED,
};

use super::{
    call::CalledDevice,
    code::{INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, NvmlResult, VERSION_MISMATCH},
    memory::to_counter,
    nvml,
    wire::{Maybe, Out},
};

/// Sampling period of the driver's utilisation rates, in microseconds.
const PERIOD: c_uint = 167_000;
/// First architecture with a JPEG engine and an optical flow engine on data centre cards: Ampere.
const NEW_ENGINES: u32 = 7;

nvml! {
    device nvmlDeviceGetUtilizationRates: (value: Out<nvmlUtilization_t>) |unit| {
        undivided(unit)?;
        let sensors = &unit.gpu.sensors;
        value.set(nvmlUtilization_t {
            gpu: to_counter(sensors.utilization),
            memory: to_counter(sensors.memory_utilization),
        })
    };
    device nvmlDeviceGetEncoderUtilization: (value: Out<c_uint>, period: Out<c_uint>) |unit|
        set_busy(unit, unit.gpu.sensors.encoder_utilization, &value, &period);
    device nvmlDeviceGetDecoderUtilization: (value: Out<c_uint>, period: Out<c_uint>) |unit|
        set_busy(unit, unit.gpu.sensors.decoder_utilization, &value, &period);
    device nvmlDeviceGetJpgUtilization, nvmlDeviceGetOfaUtilization: (value: Out<c_uint>, period: Out<c_uint>) |unit| {
        (unit.model.architecture >= NEW_ENGINES).then_some(()).ok_or(NOT_SUPPORTED)?;
        set_busy(unit, 0, &value, &period)
    };
    device nvmlDeviceGetEncoderCapacity: (kind: c_uint, capacity: Out<c_uint>) |unit| {
        unit.require_card()?;
        match kind {
            0 | 1 => capacity.set(100),
            2 => Err(NOT_SUPPORTED),
            _ => Err(INVALID_ARGUMENT),
        }
    };
    device nvmlDeviceGetEncoderStats: (sessions: Out<c_uint>, rate: Out<c_uint>, latency: Out<c_uint>) |unit| {
        unit.require_card()?;
        sessions.set(0)?;
        rate.set(0)?;
        latency.set(0)
    };
    device nvmlDeviceGetEncoderSessions: (count: Out<c_uint>, _sessions: Maybe<nvmlEncoderSessionInfo_t>) |unit| {
        unit.require_card()?;
        count.set(0)
    };
    device nvmlDeviceGetFBCStats: (stats: Out<nvmlFBCStats_t>) |unit| {
        unit.require_card()?;
        stats.set(nvmlFBCStats_t { sessionsCount: 0, averageFPS: 0, averageLatency: 0 })
    };
    device nvmlDeviceGetFBCSessions: (count: Out<c_uint>, _sessions: Maybe<nvmlFBCSessionInfo_t>) |unit| {
        unit.require_card()?;
        count.set(0)
    };
    device nvmlDeviceGetDynamicPstatesInfo: (info: Out<nvmlGpuDynamicPstatesInfo_t>) |unit| {
        undivided(unit)?;
        let mut utilization = [Busy { bIsPresent: 0, percentage: 0, incThreshold: 0, decThreshold: 0 }; 8];
        let sensors = &unit.gpu.sensors;
        for (domain, value) in utilization.iter_mut().zip([sensors.utilization, sensors.memory_utilization]) {
            *domain = Busy { bIsPresent: 1, percentage: to_counter(value), incThreshold: 0, decThreshold: 0 };
        }
        info.set(nvmlGpuDynamicPstatesInfo_t { flags: 1, utilization })
    };
    // Simulated cards have no GPM metrics. The version of this structure is a plain number without
    // its size.
    device nvmlGpmQueryDeviceSupport: (support: Out<nvmlGpmSupport_t>) |unit| {
        unit.require_card()?;
        (support.get()?.version == 1).then_some(()).ok_or(VERSION_MISMATCH)?;
        support.set(nvmlGpmSupport_t { version: 1, isSupportedDevice: 0 })
    };
    device nvmlDeviceGetSamples: (
        kind: c_uint,
        since: c_ulonglong,
        value_type: Out<c_uint>,
        count: Out<c_uint>,
        samples: Maybe<nvmlSample_t>,
    ) |unit| {
        let value = sampled(unit, kind)?;
        let now = now_micros();
        (now > since).then_some(()).ok_or(NOT_FOUND)?;
        value_type.set(UNSIGNED)?;
        // The driver keeps a buffer of samples; the simulation samples at the call.
        let sample = nvmlSample_t { timeStamp: now, sampleValue: nvmlValue_t { uiVal: to_counter(value) } };
        samples.count_or_list(&count, &[sample])
    };
}

/// Fails with MIG mode on: NVML then has utilisation neither for the card nor for a MIG device.
pub(super) fn undivided(unit: &CalledDevice<'_>) -> NvmlResult {
    let whole = !unit.gpu.mig_enabled && unit.mig.is_none();
    whole.then_some(()).ok_or(NOT_SUPPORTED)
}

fn set_busy(
    unit: &CalledDevice<'_>,
    percent: u64,
    value: &Out<c_uint>,
    period: &Out<c_uint>,
) -> NvmlResult {
    undivided(unit)?;
    value.set(to_counter(percent))?;
    period.set(PERIOD)
}

fn sampled(unit: &CalledDevice<'_>, kind: c_uint) -> NvmlResult<u64> {
    undivided(unit)?;
    let sensors = &unit.gpu.sensors;
    match kind {
        0 => Ok(sensors.power),
        1 => Ok(sensors.utilization),
        2 => Ok(sensors.memory_utilization),
        3 => Ok(sensors.encoder_utilization),
        4 => Ok(sensors.decoder_utilization),
        5 => Ok(sensors.clock_sm),
        6 => Ok(sensors.clock_memory),
        8 | 9 if unit.model.architecture >= NEW_ENGINES => Ok(0),
        7..=9 => Err(NOT_SUPPORTED),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// Microseconds since 1970, as in the driver's samples.
pub(super) fn now_micros() -> c_ulonglong {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        c_ulonglong::try_from(since.as_micros()).unwrap_or(0)
    })
}
