//! Power, temperature and fans: values and limits.

use std::ffi::{c_int, c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlCoolerInfo_v1_t, nvmlFanSpeedInfo_v1_t, nvmlGpuThermalSettings_t,
    nvmlGpuThermalSettings_t__bindgen_ty_1 as Sensor, nvmlMarginTemperature_v1_t,
    nvmlPowerValue_v2_t, nvmlTemperature_v1_t,
};

use super::{
    call::{self, CalledDevice},
    code::{INVALID_ARGUMENT, NOT_SUPPORTED, NvmlResult},
    memory::to_counter,
    nvml,
    wire::{Out, mark_of},
};

/// NVML's sensor number for all sensors of a card.
const ALL_SENSORS: c_uint = 15;
/// Fan speed at full power, in revolutions per minute.
const FULL_SPEED: u64 = 3000;

nvml! {
    device nvmlDeviceGetPowerUsage: (value: Out<c_uint>) |unit| {
        unit.require_card()?;
        value.set(to_counter(unit.gpu.sensors.power))
    };
    device nvmlDeviceGetTotalEnergyConsumption: (energy: Out<c_ulonglong>) |unit| {
        unit.require_card()?;
        energy.set(unit.gpu.energy_millijoules(unit.model))
    };
    device nvmlDeviceGetPowerManagementMode: (mode: Out<c_uint>) |unit| {
        unit.require_card()?;
        mode.set(1)
    };
    device nvmlDeviceGetPowerManagementLimit, nvmlDeviceGetEnforcedPowerLimit: (value: Out<c_uint>) |unit| {
        unit.require_card()?;
        value.set(power_limit(unit))
    };
    device nvmlDeviceGetPowerManagementDefaultLimit: (limit: Out<c_uint>) |unit| {
        unit.require_card()?;
        limit.set(milliwatts(unit.model.power.max))
    };
    device nvmlDeviceGetPowerManagementLimitConstraints: (min: Out<c_uint>, max: Out<c_uint>) |unit| {
        unit.require_card()?;
        min.set(milliwatts(unit.model.power.min))?;
        max.set(milliwatts(unit.model.power.max))
    };
    device nvmlDeviceSetPowerManagementLimit: (limit: c_uint) |unit| set_limit(unit, limit);
    device nvmlDeviceSetPowerManagementLimit_v2: (value: Out<nvmlPowerValue_v2_t>) |unit| {
        value.check_version(2)?;
        let value = value.get()?;
        match value.powerScope {
            0 => set_limit(unit, value.powerValueMw),
            // Module and memory have no power limits of their own.
            1 | 2 => Err(NOT_SUPPORTED),
            _ => Err(INVALID_ARGUMENT),
        }
    };
    device nvmlDeviceGetTemperature: (sensor: c_uint, value: Out<c_uint>) |unit| {
        unit.require_card()?;
        if sensor != 0 {
            return Err(INVALID_ARGUMENT);
        }
        value.set(to_counter(unit.gpu.sensors.temperature))
    };
    device nvmlDeviceGetTemperatureV: (value: Out<nvmlTemperature_v1_t>) |unit| {
        value.check_version(1)?;
        unit.require_card()?;
        if value.get()?.sensorType != 0 {
            return Err(INVALID_ARGUMENT);
        }
        value.set(nvmlTemperature_v1_t {
            version: mark_of::<nvmlTemperature_v1_t>(1),
            sensorType: 0,
            temperature: degrees(unit.gpu.sensors.temperature),
        })
    };
    device nvmlDeviceGetTemperatureThreshold: (kind: c_uint, value: Out<c_uint>) |unit| {
        unit.require_card()?;
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
    device nvmlDeviceGetMarginTemperature: (value: Out<nvmlMarginTemperature_v1_t>) |unit| {
        value.check_version(1)?;
        unit.require_card()?;
        let limit = c_int::try_from(unit.model.thresholds.max).unwrap_or(c_int::MAX);
        value.set(nvmlMarginTemperature_v1_t {
            version: mark_of::<nvmlMarginTemperature_v1_t>(1),
            marginTemperature: limit.saturating_sub(degrees(unit.gpu.sensors.temperature)),
        })
    };
    device nvmlDeviceGetThermalSettings: (index: c_uint, settings: Out<nvmlGpuThermalSettings_t>) |unit| {
        unit.require_card()?;
        if index != 0 && index != ALL_SENSORS {
            return Err(INVALID_ARGUMENT);
        }
        settings.set(nvmlGpuThermalSettings_t { count: 1, sensor: [core_sensor(unit), NOTHING, NOTHING] })
    };
    device nvmlDeviceGetNumFans: (count: Out<c_uint>) |unit| {
        unit.require_card()?;
        count.set(unit.model.board.fans)
    };
    device nvmlDeviceGetFanSpeed: (speed: Out<c_uint>) |unit| speed.set(fan(unit, 0)?);
    device nvmlDeviceGetFanSpeed_v2, nvmlDeviceGetTargetFanSpeed: (index: c_uint, speed: Out<c_uint>) |unit|
        speed.set(fan(unit, index)?);
    device nvmlDeviceGetFanSpeedRPM: (info: Out<nvmlFanSpeedInfo_v1_t>) |unit| {
        info.check_version(1)?;
        let index = info.get()?.fan;
        let speed = u64::from(fan(unit, index)?).saturating_mul(FULL_SPEED) / 100;
        let version = mark_of::<nvmlFanSpeedInfo_v1_t>(1);
        info.set(nvmlFanSpeedInfo_v1_t { version, fan: index, speed: to_counter(speed) })
    };
    device nvmlDeviceGetMinMaxFanSpeed: (min: Out<c_uint>, max: Out<c_uint>) |unit| {
        fan(unit, 0)?;
        min.set(30)?;
        max.set(100)
    };
    device nvmlDeviceGetFanControlPolicy_v2: (index: c_uint, policy: Out<c_uint>) |unit| {
        fan(unit, index)?;
        policy.set(0)
    };
    device nvmlDeviceGetCoolerInfo: (info: Out<nvmlCoolerInfo_v1_t>) |unit| {
        info.check_version(1)?;
        let index = info.get()?.index;
        fan(unit, index)?;
        // A fan with variable speed that cools the whole card.
        info.set(nvmlCoolerInfo_v1_t { version: mark_of::<nvmlCoolerInfo_v1_t>(1), index, signalType: 2, target: 7 })
    };
}

const NOTHING: Sensor = Sensor {
    controller: 0,
    defaultMinTemp: 0,
    defaultMaxTemp: 0,
    currentTemp: 0,
    target: 0,
};

/// Sensor of the GPU core.
fn core_sensor(unit: &CalledDevice<'_>) -> Sensor {
    Sensor {
        controller: 1,
        defaultMaxTemp: c_int::try_from(unit.model.thresholds.max).unwrap_or(c_int::MAX),
        currentTemp: degrees(unit.gpu.sensors.temperature),
        target: 1,
        ..NOTHING
    }
}

/// Speed of one fan in per cent.
fn fan(unit: &CalledDevice<'_>, index: c_uint) -> NvmlResult<c_uint> {
    unit.require_card()?;
    match unit.model.board.fans {
        0 => Err(NOT_SUPPORTED),
        count if index >= count => Err(INVALID_ARGUMENT),
        _ => Ok(to_counter(unit.gpu.sensors.fan_speed)),
    }
}

/// Power limit in milliwatts.
pub(super) fn power_limit(unit: &CalledDevice<'_>) -> c_uint {
    let default = milliwatts(unit.model.power.max);
    unit.gpu.settings.power_limit.unwrap_or(default)
}

fn set_limit(unit: &CalledDevice<'_>, limit: c_uint) -> NvmlResult {
    unit.require_card()?;
    let power = unit.model.power;
    if limit < milliwatts(power.min) || limit > milliwatts(power.max) {
        return Err(INVALID_ARGUMENT);
    }
    call::change_card(unit, |gpu, _| {
        gpu.settings.power_limit = Some(limit);
        Ok(())
    })
}

fn degrees(value: u64) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

fn milliwatts(watts: u32) -> c_uint {
    watts.saturating_mul(1000)
}
