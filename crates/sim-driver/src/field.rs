//! Field values: many values in one call, each with a return code of its own.

use std::ffi::{c_int, c_uint};

use nvml_wrapper_sys::bindings::{
    field_id as id, nvmlFieldValue_t, nvmlValue_t,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT as INT,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG as LONG_LONG,
};

use super::{
    call::CalledDevice,
    code::{INVALID_ARGUMENT, NOT_SUPPORTED, NvmlResult, SUCCESS},
    engine::now_micros,
    link, nvml, power,
    setting::corrects,
    wire::Out,
};

/// Maximum number of fields in one call. NVML rejects a call with more.
const MAX_FIELDS: usize = 8192;
/// NVML's scope id for all links.
const ALL_LINKS: c_uint = u32::MAX;
/// Recovery action "drain and reset".
const DRAIN_AND_RESET: u64 = 4;
/// Bandwidth of a link in MB/s, by NVML's NVLink version.
const SPEEDS: [u64; 8] = [0, 19_531, 25_781, 25_781, 25_000, 25_000, 26_562, 53_125];

nvml! {
    device nvmlDeviceGetFieldValues: (count: c_int, values: Out<nvmlFieldValue_t>) |unit| {
        for index in 0..checked(count)? {
            let asked = values.get_at(index)?;
            values.set_at(index, fill_field(unit, asked))?;
        }
        Ok(())
    };
    device nvmlDeviceClearFieldValues: (count: c_int, values: Out<nvmlFieldValue_t>) |unit| {
        unit.require_card()?;
        for index in 0..checked(count)? {
            let mut asked = values.get_at(index)?;
            // Only link counters can be cleared. They are always zero here.
            let counter = matches!(asked.fieldId, 32..=59 | 96..=119 | 148..=163 | 205..=215);
            asked.nvmlReturn = if counter { SUCCESS } else { NOT_SUPPORTED };
            values.set_at(index, asked)?;
        }
        Ok(())
    };
}

fn checked(count: c_int) -> NvmlResult<usize> {
    let count = usize::try_from(count).map_err(|_| INVALID_ARGUMENT)?;
    if count == 0 || count > MAX_FIELDS {
        return Err(INVALID_ARGUMENT);
    }
    Ok(count)
}

fn fill_field(unit: &CalledDevice<'_>, mut field: nvmlFieldValue_t) -> nvmlFieldValue_t {
    field.latencyUsec = 0;
    field.timestamp = i64::try_from(now_micros()).unwrap_or(0);
    match field_value(unit, field.fieldId, field.scopeId) {
        Ok(value) => {
            field.nvmlReturn = SUCCESS;
            field.valueType = value_type(field.fieldId);
            // On a little-endian machine a value that fits in 32 bits can be read from the 32-bit
            // member of the union too.
            field.value = nvmlValue_t { ullVal: value };
        }
        Err(code) => field.nvmlReturn = code,
    }
    field
}

/// Value type of a field: counters are 64 bits wide, all others 32.
fn value_type(field: c_uint) -> c_uint {
    match field {
        3..=30 | 32..=83 | 96..=131 | 138..=141 | 148..=163 | 191 | 197 | 198 | 201..=222 => {
            LONG_LONG
        }
        _ => INT,
    }
}

fn field_value(unit: &CalledDevice<'_>, field: c_uint, scope: c_uint) -> NvmlResult<u64> {
    unit.require_card()?;
    let places = [ecc_field, remap_field, link_field, limit_field, bus];
    for place in places {
        if let Some(answer) = place(unit, field, scope) {
            return answer;
        }
    }
    Err(NOT_SUPPORTED)
}

/// ECC modes and error counts. All errors are in device memory; the other locations have none.
fn ecc_field(unit: &CalledDevice<'_>, field: c_uint, _scope: c_uint) -> Option<NvmlResult<u64>> {
    let sensors = &unit.gpu.sensors;
    let value = match field {
        id::NVML_FI_DEV_ECC_CURRENT => 1,
        id::NVML_FI_DEV_ECC_PENDING => u64::from(unit.gpu.settings.ecc.unwrap_or(true)),
        id::NVML_FI_DEV_ECC_SBE_VOL_TOTAL | id::NVML_FI_DEV_ECC_SBE_VOL_DEV => {
            sensors.ecc_corrected
        }
        id::NVML_FI_DEV_ECC_SBE_AGG_TOTAL | id::NVML_FI_DEV_ECC_SBE_AGG_DEV => {
            sensors.ever_corrected()
        }
        id::NVML_FI_DEV_ECC_DBE_VOL_TOTAL | id::NVML_FI_DEV_ECC_DBE_VOL_DEV => {
            sensors.ecc_uncorrected
        }
        id::NVML_FI_DEV_ECC_DBE_AGG_TOTAL | id::NVML_FI_DEV_ECC_DBE_AGG_DEV => {
            sensors.ever_uncorrected()
        }
        id::NVML_FI_DEV_ECC_SBE_VOL_L1..=id::NVML_FI_DEV_ECC_DBE_AGG_CBU => 0,
        _ => return None,
    };
    Some(corrects(unit).map(|()| value))
}

/// Row remapping, page retirement, and the pending recovery action.
fn remap_field(unit: &CalledDevice<'_>, field: c_uint, _scope: c_uint) -> Option<NvmlResult<u64>> {
    let sensors = &unit.gpu.sensors;
    let pending = sensors.remap_pending != 0 || sensors.retired_pending != 0;
    Some(Ok(match field {
        id::NVML_FI_DEV_RETIRED_SBE | id::NVML_FI_DEV_RETIRED_PENDING_SBE => 0,
        id::NVML_FI_DEV_RETIRED_DBE => sensors.retired_pages,
        id::NVML_FI_DEV_RETIRED_PENDING | id::NVML_FI_DEV_RETIRED_PENDING_DBE => {
            sensors.retired_pending
        }
        id::NVML_FI_DEV_REMAPPED_COR => sensors.remapped_corrected,
        id::NVML_FI_DEV_REMAPPED_UNC => sensors.remapped_uncorrected,
        id::NVML_FI_DEV_REMAPPED_PENDING => sensors.remap_pending,
        id::NVML_FI_DEV_REMAPPED_FAILURE => sensors.remap_failed,
        id::NVML_FI_DEV_RESET_STATUS => u64::from(matches!(sensors.recovery_action, 1 | 2)),
        id::NVML_FI_DEV_DRAIN_AND_RESET_STATUS => {
            u64::from(pending || sensors.recovery_action == DRAIN_AND_RESET)
        }
        id::NVML_FI_DEV_GET_GPU_RECOVERY_ACTION if sensors.recovery_action == 0 && pending => {
            DRAIN_AND_RESET
        }
        id::NVML_FI_DEV_GET_GPU_RECOVERY_ACTION => sensors.recovery_action,
        _ => return None,
    }))
}

/// NVLinks. For some fields `scope` is the number of the link.
fn link_field(unit: &CalledDevice<'_>, field: c_uint, scope: c_uint) -> Option<NvmlResult<u64>> {
    let links = &unit.gpu.links;
    let speed = usize::try_from(unit.model.nvlink_version).ok();
    let speed = speed.and_then(|version| SPEEDS.get(version)).copied();
    let one = |link: c_uint, up: u64| {
        let found = link::find_link(unit, link)?;
        Ok(if found.active { up } else { 0 })
    };
    Some(match field {
        id::NVML_FI_DEV_NVLINK_LINK_COUNT => Ok(links.len() as u64),
        id::NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT => Ok(links
            .iter()
            .filter(|link| link.active && link.switch)
            .count() as u64),
        84..=89 => one(field - 84, speed.unwrap_or(0)),
        132..=137 => one(field - 132 + 6, speed.unwrap_or(0)),
        id::NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON if links.is_empty() => Err(NOT_SUPPORTED),
        id::NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON => Ok(speed.unwrap_or(0)),
        id::NVML_FI_DEV_NVLINK_GET_SPEED => one(scope, speed.unwrap_or(0)),
        id::NVML_FI_DEV_NVLINK_GET_STATE => one(scope, 1),
        id::NVML_FI_DEV_NVLINK_GET_VERSION => one(scope, u64::from(unit.model.nvlink_version)),
        // Counters of errors and traffic, for one link or all.
        32..=73 | 96..=131 | 138..=141 | 148..=163 | 201..=215 if links.is_empty() => {
            Err(NOT_SUPPORTED)
        }
        id::NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL => Ok(unit.gpu.sensors.nvlink_errors),
        32..=73 | 96..=131 | 148..=160 => Ok(0),
        138..=141 | 161..=163 | 201..=215 if scope == ALL_LINKS => Ok(0),
        138..=141 | 161..=163 | 201..=215 => one(scope, 0),
        _ => return None,
    })
}

/// Power, temperature, and the time for which they limited the clocks.
fn limit_field(unit: &CalledDevice<'_>, field: c_uint, _scope: c_uint) -> Option<NvmlResult<u64>> {
    let (sensors, limits) = (&unit.gpu.sensors, unit.model.thresholds);
    let below = |limit: u32| Ok(u64::from(limits.shutdown.saturating_sub(limit)));
    Some(match field {
        74..=81 | 251..=253 => Ok(0),
        id::NVML_FI_DEV_MEMORY_TEMP if sensors.memory_temperature == 0 => Err(NOT_SUPPORTED),
        id::NVML_FI_DEV_MEMORY_TEMP => Ok(sensors.memory_temperature),
        id::NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION | id::NVML_FI_DEV_ENERGY => {
            Ok(unit.gpu.energy_millijoules(unit.model))
        }
        id::NVML_FI_DEV_POWER_AVERAGE | id::NVML_FI_DEV_POWER_INSTANT => Ok(sensors.power),
        id::NVML_FI_DEV_POWER_MIN_LIMIT => Ok(u64::from(unit.model.power.min) * 1000),
        id::NVML_FI_DEV_POWER_MAX_LIMIT | id::NVML_FI_DEV_POWER_DEFAULT_LIMIT => {
            Ok(u64::from(unit.model.power.max) * 1000)
        }
        id::NVML_FI_DEV_POWER_CURRENT_LIMIT | id::NVML_FI_DEV_POWER_REQUESTED_LIMIT => {
            Ok(u64::from(power::power_limit(unit)))
        }
        id::NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT => Ok(0),
        id::NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT => below(limits.slowdown),
        id::NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT => below(limits.max),
        _ => return None,
    })
}

/// PCIe counters and capabilities of the card.
fn bus(unit: &CalledDevice<'_>, field: c_uint, _scope: c_uint) -> Option<NvmlResult<u64>> {
    Some(match field {
        id::NVML_FI_DEV_PCIE_REPLAY_COUNTER => Ok(unit.gpu.sensors.pcie_replays),
        id::NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER => Ok(0),
        id::NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER | 173..=183 | 197 | 198 => Ok(0),
        id::NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED => Ok(u64::from(
            !unit.model.mig.is_empty() && unit.model.architecture >= 9,
        )),
        id::NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE => {
            Ok(u64::from(!unit.model.mig.is_empty()))
        }
        id::NVML_FI_DEV_C2C_LINK_COUNT => Ok(0),
        _ => return None,
    })
}
