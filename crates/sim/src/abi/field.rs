//! Field values: many figures in one call, each with an answer of its own.

use std::ffi::c_int;

use nvml_wrapper_sys::bindings::{
    field_id as id, nvmlFieldValue_t, nvmlValue_t,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG as LONG_LONG,
};

use super::{
    call::Unit,
    code::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED, SUCCESS},
    nvml,
    wire::Out,
};

/// NVML fails for more fields in one call.
const MAX_FIELDS: usize = 8192;

nvml! {
    device nvmlDeviceGetFieldValues: (count: c_int, values: Out<nvmlFieldValue_t>) |unit| {
        let count = usize::try_from(count).map_err(|_| INVALID_ARGUMENT)?;
        if count == 0 || count > MAX_FIELDS {
            return Err(INVALID_ARGUMENT);
        }
        for index in 0..count {
            let asked = values.get_at(index)?;
            values.set_at(index, fill(unit, asked))?;
        }
        Ok(())
    };
}

fn fill(unit: &Unit<'_>, mut field: nvmlFieldValue_t) -> nvmlFieldValue_t {
    field.latencyUsec = 0;
    field.timestamp = jiff::Timestamp::now().as_microsecond();
    field.valueType = LONG_LONG;
    match value(unit, field.fieldId) {
        Ok(value) => {
            field.nvmlReturn = SUCCESS;
            field.value = nvmlValue_t { ullVal: value };
        }
        Err(code) => field.nvmlReturn = code,
    }
    field
}

fn value(unit: &Unit<'_>, field: u32) -> Answer<u64> {
    unit.whole()?;
    let sensors = &unit.gpu.sensors;
    let power = unit.model.power;
    Ok(match field {
        id::NVML_FI_DEV_ECC_CURRENT => 1,
        id::NVML_FI_DEV_ECC_SBE_VOL_TOTAL | id::NVML_FI_DEV_ECC_SBE_AGG_TOTAL => {
            sensors.ecc_corrected
        }
        id::NVML_FI_DEV_ECC_DBE_VOL_TOTAL | id::NVML_FI_DEV_ECC_DBE_AGG_TOTAL => {
            sensors.ecc_uncorrected
        }
        id::NVML_FI_DEV_RETIRED_PENDING => sensors.retired_pending,
        id::NVML_FI_DEV_MEMORY_TEMP if sensors.memory_temperature > 0 => sensors.memory_temperature,
        id::NVML_FI_DEV_NVLINK_LINK_COUNT => unit.gpu.links.len() as u64,
        id::NVML_FI_DEV_PCIE_REPLAY_COUNTER => sensors.pcie_replays,
        id::NVML_FI_DEV_REMAPPED_COR => sensors.remapped_corrected,
        id::NVML_FI_DEV_REMAPPED_UNC => sensors.remapped_uncorrected,
        id::NVML_FI_DEV_REMAPPED_PENDING => sensors.remap_pending,
        id::NVML_FI_DEV_REMAPPED_FAILURE => sensors.remap_failed,
        id::NVML_FI_DEV_POWER_AVERAGE | id::NVML_FI_DEV_POWER_INSTANT => sensors.power,
        id::NVML_FI_DEV_POWER_MIN_LIMIT => u64::from(power.min) * 1000,
        id::NVML_FI_DEV_POWER_MAX_LIMIT
        | id::NVML_FI_DEV_POWER_DEFAULT_LIMIT
        | id::NVML_FI_DEV_POWER_CURRENT_LIMIT => u64::from(power.max) * 1000,
        _ => return Err(NOT_SUPPORTED),
    })
}
