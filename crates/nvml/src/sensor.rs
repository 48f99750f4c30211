//! Sensors and error counters of a device.

use std::ffi::c_ulonglong;

use nvml_wrapper_sys::bindings as sys;

use crate::{DeviceHandle, Error, symbol};

/// Memory sizes of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySizes {
    /// Total memory, in bytes.
    pub total: u64,
    /// Memory in use, in bytes. Drivers without `nvmlDeviceGetMemoryInfo_v2` include the reserved
    /// memory here.
    pub used: u64,
    /// Memory that the driver reserves for itself, in bytes; 0 with drivers without
    /// `nvmlDeviceGetMemoryInfo_v2`.
    pub reserved: u64,
}

impl DeviceHandle<'_> {
    /// Reads the memory sizes.
    ///
    /// # Errors
    /// The driver's answer; `NOT_SUPPORTED` on cards that share the machine's memory.
    pub fn read_memory(&self) -> Result<MemorySizes, Error> {
        let empty = sys::nvmlMemory_v2_t {
            version: struct_version::<sys::nvmlMemory_v2_t>(2),
            total: 0,
            reserved: 0,
            free: 0,
            used: 0,
        };
        match self.read_value(&symbol::MEMORY_V2, empty) {
            Ok(memory) => Ok(MemorySizes {
                total: memory.total,
                used: memory.used,
                reserved: memory.reserved,
            }),
            Err(error) if error.is_not_supported() => self.memory_v1(),
            Err(error) => Err(error),
        }
    }

    /// Reads the temperature of the GPU core, in degrees Celsius.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn read_temperature(&self) -> Result<u32, Error> {
        let sensor = sys::nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU;
        self.get_at(&symbol::TEMPERATURE, sensor, 0)
    }

    /// Reads the power draw, in milliwatts.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn read_power_draw(&self) -> Result<u32, Error> {
        self.read_value(&symbol::POWER, 0)
    }

    /// Reads the utilization of the compute engines, in percent.
    ///
    /// # Errors
    /// The driver's answer; `NOT_SUPPORTED` on MIG devices.
    pub fn read_utilization(&self) -> Result<u32, Error> {
        let empty = sys::nvmlUtilization_t { gpu: 0, memory: 0 };
        self.read_value(&symbol::UTILIZATION, empty)
            .map(|rates| rates.gpu)
    }

    /// Reads the number of corrected memory errors since the driver was loaded.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn ecc_corrected(&self) -> Result<u64, Error> {
        self.read_ecc_count(sys::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_CORRECTED)
    }

    /// Reads the number of uncorrectable memory errors since the driver was loaded.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn ecc_uncorrected(&self) -> Result<u64, Error> {
        self.read_ecc_count(sys::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED)
    }

    fn memory_v1(&self) -> Result<MemorySizes, Error> {
        let empty = sys::nvmlMemory_t {
            total: 0,
            free: 0,
            used: 0,
        };
        let memory = self.read_value(&symbol::MEMORY, empty)?;
        Ok(MemorySizes {
            total: memory.total,
            used: memory.used,
            reserved: 0,
        })
    }

    fn read_ecc_count(&self, kind: sys::nvmlMemoryErrorType_t) -> Result<u64, Error> {
        let mut count: c_ulonglong = 0;
        self.make_call(&symbol::ECC_ERRORS, |get| {
            let since_load = sys::nvmlEccCounterType_enum_NVML_VOLATILE_ECC;
            // SAFETY: the handle is the driver's, the pointer is valid for one counter.
            unsafe { get(self.raw_handle(), kind, since_load, &raw mut count) }
        })?;
        Ok(count)
    }
}

/// Version field of a structure: its size in the low bits, the version number in the top byte.
// nvml.h has this as the macro `NVML_STRUCT_VERSION`; nvml-wrapper-sys does not generate it.
pub(crate) const fn struct_version<T>(number: u32) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the structures are some 100 bytes"
    )]
    let size = size_of::<T>() as u32;
    size | number << 24
}
