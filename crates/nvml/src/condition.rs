//! How well a device is: what the driver waits for, what it counts, and what holds it back.

use std::ffi::{c_int, c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{self as sys, field_id, nvmlFieldValue_t, nvmlValue_t};

use crate::{Code, Device, Error, symbol};

/// Rows of memory that were replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// After errors that were repaired.
    pub corrected: u32,
    /// After errors that were not.
    pub uncorrected: u32,
    /// Whether some wait for a reset to be replaced.
    pub pending: bool,
    /// Whether some could not be replaced.
    pub failed: bool,
}

/// Where a card stands with the NVLink fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// The driver knows of no fabric.
    None,
    /// It has not begun.
    NotStarted,
    /// It is under way.
    InProgress,
    /// It ended: as it should, or with this code.
    Ended(Result<(), Code>),
    /// A number that is not known here.
    Other(u32),
}

/// A fact that is one figure in NVML's list of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field(c_uint);

/// The names of the bits of NVML's clock event reasons, but for the one that says "idle".
const REASONS: [(c_uint, &str); 8] = [
    (
        sys::nvmlClocksEventReasonApplicationsClocksSetting,
        "ApplicationsClocksSetting",
    ),
    (
        sys::nvmlClocksEventReasonDisplayClockSetting,
        "DisplayClockSetting",
    ),
    (
        sys::nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
        "HwPowerBrakeSlowdown",
    ),
    (sys::nvmlClocksThrottleReasonHwSlowdown, "HwSlowdown"),
    (
        sys::nvmlClocksThrottleReasonHwThermalSlowdown,
        "HwThermalSlowdown",
    ),
    (sys::nvmlClocksEventReasonSwPowerCap, "SwPowerCap"),
    (
        sys::nvmlClocksEventReasonSwThermalSlowdown,
        "SwThermalSlowdown",
    ),
    (sys::nvmlClocksEventReasonSyncBoost, "SyncBoost"),
];

/// The errors of all NVLinks of a card.
const NVLINK_TOTALS: [Field; 4] = [
    Field(field_id::NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL),
    Field(field_id::NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL),
    Field(field_id::NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL),
    Field(field_id::NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL),
];

impl Device<'_> {
    /// Rows of memory that were replaced.
    ///
    /// # Errors
    /// What the driver answers; cards before Ampere retire pages instead.
    pub fn rows(&self) -> Result<Rows, Error> {
        let (mut corrected, mut uncorrected): (c_uint, c_uint) = (0, 0);
        let (mut pending, mut failed): (c_uint, c_uint) = (0, 0);
        self.call(&symbol::REMAPPED_ROWS, |get| {
            // SAFETY: the handle is the driver's, each pointer is valid for one unsigned int.
            unsafe {
                get(
                    self.raw(),
                    &raw mut corrected,
                    &raw mut uncorrected,
                    &raw mut pending,
                    &raw mut failed,
                )
            }
        })?;
        Ok(Rows {
            corrected,
            uncorrected,
            pending: pending != 0,
            failed: failed != 0,
        })
    }

    /// Whether pages of memory wait for a reset to be retired.
    ///
    /// # Errors
    /// What the driver answers; cards from Ampere on replace rows instead.
    pub fn retirement_pending(&self) -> Result<bool, Error> {
        self.get(&symbol::RETIREMENT_PENDING, 0)
            .map(|pending| pending != 0)
    }

    /// NVML's number of what must be done to make the card well: 0 is nothing, 1 a reset, 2 a
    /// reboot, 3 draining its peers, 4 draining and a reset.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn recovery_action(&self) -> Result<u32, Error> {
        let field = Field(field_id::NVML_FI_DEV_GET_GPU_RECOVERY_ACTION);
        let [action] = self.fields(&symbol::FIELD_VALUES, [field])?;
        action.map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Where it stands with the NVLink fabric.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn joining(&self) -> Result<Joining, Error> {
        let empty = sys::nvmlGpuFabricInfo_t {
            clusterUuid: [0; 16],
            status: 0,
            cliqueId: 0,
            state: 0,
        };
        let info = self.get(&symbol::FABRIC_V1, empty)?;
        Ok(match u32::from(info.state) {
            sys::NVML_GPU_FABRIC_STATE_NOT_SUPPORTED => Joining::None,
            sys::NVML_GPU_FABRIC_STATE_NOT_STARTED => Joining::NotStarted,
            sys::NVML_GPU_FABRIC_STATE_IN_PROGRESS => Joining::InProgress,
            sys::NVML_GPU_FABRIC_STATE_COMPLETED => Joining::Ended(Code::check(info.status)),
            other => Joining::Other(other),
        })
    }

    /// Why its clocks are held down, by NVML's names in the order of the alphabet; that it has
    /// nothing to do is no reason.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn clock_reasons(&self) -> Result<Vec<&'static str>, Error> {
        let mask: c_ulonglong = self.get(&symbol::CLOCK_REASONS, 0)?;
        let holds = |bit: c_uint| mask & c_ulonglong::from(bit) != 0;
        let found = REASONS.iter().filter(|(bit, _)| holds(*bit));
        Ok(found.map(|(_, name)| *name).collect())
    }

    /// Errors of all its NVLinks: CRC errors, replays and recoveries.
    ///
    /// # Errors
    /// What the driver answers where it gives none of them.
    pub fn link_errors(&self) -> Result<u64, Error> {
        let totals = self.fields(&symbol::FIELD_VALUES, NVLINK_TOTALS)?;
        let mut sum = None;
        let mut first = None;
        for total in totals {
            match total {
                Ok(count) => sum = Some(sum.unwrap_or(0_u64).saturating_add(count)),
                Err(error) => {
                    first.get_or_insert(error);
                }
            }
        }
        match (sum, first) {
            (Some(sum), _) => Ok(sum),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(0),
        }
    }

    /// PCIe packets that had to be sent again.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn pcie_replays(&self) -> Result<u64, Error> {
        self.get(&symbol::PCIE_REPLAYS, 0).map(u64::from)
    }

    /// True if persistence mode is on: the driver keeps the card set up while nobody has it open.
    /// Otherwise it sets the card up anew at the next use, and its volatile counters begin at zero.
    ///
    /// # Errors
    /// What the driver answers; drivers for Windows do not support it.
    pub fn is_persistent(&self) -> Result<bool, Error> {
        let enabled = sys::nvmlEnableState_enum_NVML_FEATURE_ENABLED;
        self.get(&symbol::PERSISTENCE, 0)
            .map(|mode| mode == enabled)
    }

    /// Energy drawn since the driver was loaded, in millijoules.
    ///
    /// # Errors
    /// What the driver answers; cards before Volta do not support it.
    pub fn energy(&self) -> Result<u64, Error> {
        self.get(&symbol::ENERGY, 0)
    }

    /// Errors since the driver was loaded in the memories on the chip that were not repaired: what
    /// a MIG device can tell of its own.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn sram_uncorrected(&self) -> Result<u64, Error> {
        let mut count: c_ulonglong = 0;
        self.call(&symbol::ECC_AT, |get| {
            let kind = sys::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED;
            let since_load = sys::nvmlEccCounterType_enum_NVML_VOLATILE_ECC;
            let place = sys::nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_SRAM;
            // SAFETY: the handle is the driver's, the pointer is valid for one counter.
            unsafe { get(self.raw(), kind, since_load, place, &raw mut count) }
        })?;
        Ok(count)
    }

    /// Asks for several fields in one call, each of which has an answer of its own.
    fn fields<const N: usize>(
        &self,
        symbol: &symbol::Symbol<symbol::GetFields>,
        wanted: [Field; N],
    ) -> Result<[Result<u64, Error>; N], Error> {
        let mut values = wanted.map(|Field(id)| nvmlFieldValue_t {
            fieldId: id,
            scopeId: 0,
            timestamp: 0,
            latencyUsec: 0,
            valueType: 0,
            nvmlReturn: 0,
            value: nvmlValue_t { ullVal: 0 },
        });
        let count = c_int::try_from(N).unwrap_or(c_int::MAX);
        self.call(symbol, |get| {
            // SAFETY: the handle is the driver's, the array has as many values as are told.
            unsafe { get(self.raw(), count, values.as_mut_ptr()) }
        })?;
        Ok(values.map(|value| {
            Code::check(value.nvmlReturn).map_err(|code| Error::Failed {
                call: symbol.names()[0].to_str().unwrap_or("?"),
                device: Some(self.at()),
                code,
            })?;
            Ok(figure(&value))
        }))
    }
}

/// The figure in a field, in whatever type it is given.
fn figure(field: &nvmlFieldValue_t) -> u64 {
    // SAFETY: the union was zero before the call and all its members are plain numbers, so that
    // each of them may be read.
    unsafe {
        match field.valueType {
            sys::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT => u64::from(field.value.uiVal),
            _ => field.value.ullVal,
        }
    }
}
