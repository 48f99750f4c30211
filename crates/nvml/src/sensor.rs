//! Sensors and counters of a device.

use std::ffi::c_ulonglong;

use nvml_wrapper_sys::bindings as sys;

use crate::{Device, Error, symbol};

/// A device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All of it, in bytes.
    pub total: u64,
    /// What is in use, in bytes; with an old driver this includes what the driver keeps for itself.
    pub used: u64,
    /// What the driver keeps for itself, in bytes; zero with an old driver, which does not tell.
    pub reserved: u64,
}

impl Device<'_> {
    /// Its memory.
    ///
    /// # Errors
    /// What the driver answers; cards that share the machine's memory do not support it.
    pub fn memory(&self) -> Result<Memory, Error> {
        let empty = sys::nvmlMemory_v2_t {
            version: version::<sys::nvmlMemory_v2_t>(2),
            total: 0,
            reserved: 0,
            free: 0,
            used: 0,
        };
        match self.get(&symbol::MEMORY_V2, empty) {
            Ok(memory) => Ok(Memory {
                total: memory.total,
                used: memory.used,
                reserved: memory.reserved,
            }),
            Err(error) if error.is_not_supported() => self.memory_v1(),
            Err(error) => Err(error),
        }
    }

    /// The temperature of its core, in degrees Celsius.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn temperature(&self) -> Result<u32, Error> {
        let sensor = sys::nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU;
        self.get_at(&symbol::TEMPERATURE, sensor, 0)
    }

    /// The power it draws, in milliwatts.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn power(&self) -> Result<u32, Error> {
        self.get(&symbol::POWER, 0)
    }

    /// How busy its compute engines are, in percent.
    ///
    /// # Errors
    /// What the driver answers; MIG devices do not support it.
    pub fn utilization(&self) -> Result<u32, Error> {
        let empty = sys::nvmlUtilization_t { gpu: 0, memory: 0 };
        self.get(&symbol::UTILIZATION, empty).map(|rates| rates.gpu)
    }

    /// Memory errors since the driver was loaded that the hardware repaired.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn ecc_corrected(&self) -> Result<u64, Error> {
        self.ecc(sys::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_CORRECTED)
    }

    /// Memory errors since the driver was loaded that the hardware could not repair.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn ecc_uncorrected(&self) -> Result<u64, Error> {
        self.ecc(sys::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED)
    }

    fn memory_v1(&self) -> Result<Memory, Error> {
        let empty = sys::nvmlMemory_t {
            total: 0,
            free: 0,
            used: 0,
        };
        let memory = self.get(&symbol::MEMORY, empty)?;
        Ok(Memory {
            total: memory.total,
            used: memory.used,
            reserved: 0,
        })
    }

    fn ecc(&self, kind: sys::nvmlMemoryErrorType_t) -> Result<u64, Error> {
        let mut count: c_ulonglong = 0;
        self.call(&symbol::ECC_ERRORS, |get| {
            let since_load = sys::nvmlEccCounterType_enum_NVML_VOLATILE_ECC;
            // SAFETY: the handle is the driver's, the pointer is valid for one counter.
            unsafe { get(self.raw(), kind, since_load, &raw mut count) }
        })?;
        Ok(count)
    }
}

/// NVML's `NVML_STRUCT_VERSION`: the size in the low bits, the version in the top byte.
pub(crate) const fn version<T>(number: u32) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the structures are some 100 bytes"
    )]
    let size = size_of::<T>() as u32;
    size | number << 24
}
