//! Health facts of a device: pending repairs, error counters, recovery action and clock limits.

use std::ffi::{c_int, c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{self as sys, field_id, nvmlFieldValue_t, nvmlValue_t};

use crate::{DeviceHandle, Error, ReturnCode, symbol};

/// Counts of memory rows that the card remapped to spare rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemappedRows {
    /// Rows remapped after correctable errors.
    pub corrected: u32,
    /// Rows remapped after uncorrectable errors.
    pub uncorrected: u32,
    /// True if a remapping takes effect only after the next reset of the card.
    pub pending: bool,
    /// True if a remapping failed at any time.
    pub failed: bool,
}

/// State of a card's registration with the NVLink fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricState {
    /// The machine has no fabric, or the driver does not support one.
    NotSupported,
    /// The registration has not begun.
    NotStarted,
    /// The registration is in progress.
    InProgress,
    /// The registration is complete: successful, or failed with this code.
    Completed(Result<(), ReturnCode>),
    /// State that this version does not know, with NVML's number.
    Unknown(u32),
}

/// Id of one field of `nvmlDeviceGetFieldValues`.
// Driver 580.82 renumbered the ids 251 to 273. The ids used here are all below 251, so no
// translation by driver version is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldId(c_uint);

/// Bits of NVML's clock event reasons with their names, sorted by name. `GpuIdle` is left out: an
/// idle card is not limited.
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

/// Error counters of NVLink, each summed over all links of a card.
const NVLINK_TOTALS: [FieldId; 4] = [
    FieldId(field_id::NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL),
    FieldId(field_id::NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL),
    FieldId(field_id::NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL),
    FieldId(field_id::NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL),
];

impl DeviceHandle<'_> {
    /// Reads the counts of remapped memory rows.
    ///
    /// # Errors
    /// The driver's answer; `NOT_SUPPORTED` on cards before Ampere, which retire pages instead, and on
    /// cards with MIG instances.
    pub fn read_remapped_rows(&self) -> Result<RemappedRows, Error> {
        let (mut corrected, mut uncorrected): (c_uint, c_uint) = (0, 0);
        let (mut pending, mut failed): (c_uint, c_uint) = (0, 0);
        self.make_call(&symbol::REMAPPED_ROWS, |get| {
            // SAFETY: the handle is the driver's, each pointer is valid for one unsigned int.
            unsafe {
                get(
                    self.raw_handle(),
                    &raw mut corrected,
                    &raw mut uncorrected,
                    &raw mut pending,
                    &raw mut failed,
                )
            }
        })?;
        Ok(RemappedRows {
            corrected,
            uncorrected,
            pending: pending != 0,
            failed: failed != 0,
        })
    }

    /// Returns true if memory pages will be retired at the next reset.
    ///
    /// # Errors
    /// The driver's answer. Cards from Ampere on answer `NOT_SUPPORTED`: they remap rows instead.
    pub fn retirement_pending(&self) -> Result<bool, Error> {
        self.read_value(&symbol::RETIREMENT_PENDING, 0)
            .map(|pending| pending != 0)
    }

    /// Reads the recovery action that the driver asks for, as NVML's number: 0 none, 1 reset, 2
    /// reboot of the node, 3 drain the P2P peers, 4 drain and reset.
    // Newer drivers add 5 (recover the IMEX domain), 6 (PCIe bus reset) and 7 (system reboot);
    // NVML's change log lists the last two under v615. The number is passed on as it is, also if
    // unknown.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn recovery_action(&self) -> Result<u32, Error> {
        let field = FieldId(field_id::NVML_FI_DEV_GET_GPU_RECOVERY_ACTION);
        let [action] = self.read_fields(&symbol::FIELD_VALUES, [field])?;
        action.map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Reads the state of the card's registration with the NVLink fabric.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn joining(&self) -> Result<FabricState, Error> {
        let empty = sys::nvmlGpuFabricInfo_t {
            clusterUuid: [0; 16],
            status: 0,
            cliqueId: 0,
            state: 0,
        };
        let info = self.read_value(&symbol::FABRIC_V1, empty)?;
        Ok(match u32::from(info.state) {
            sys::NVML_GPU_FABRIC_STATE_NOT_SUPPORTED => FabricState::NotSupported,
            sys::NVML_GPU_FABRIC_STATE_NOT_STARTED => FabricState::NotStarted,
            sys::NVML_GPU_FABRIC_STATE_IN_PROGRESS => FabricState::InProgress,
            sys::NVML_GPU_FABRIC_STATE_COMPLETED => {
                FabricState::Completed(ReturnCode::check_return(info.status))
            }
            other => FabricState::Unknown(other),
        })
    }

    /// Lists the reasons that limit the clocks, by NVML's names in alphabetical order. Idle does
    /// not count as a reason.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn clock_reasons(&self) -> Result<Vec<&'static str>, Error> {
        let mask: c_ulonglong = self.read_value(&symbol::CLOCK_REASONS, 0)?;
        let holds = |bit: c_uint| mask & c_ulonglong::from(bit) != 0;
        let found = REASONS.iter().filter(|(bit, _)| holds(*bit));
        Ok(found.map(|(_, name)| *name).collect())
    }

    /// Reads the sum of the error counters of all NVLinks: CRC errors, replays and recoveries.
    /// Counters that the driver does not give are left out of the sum.
    ///
    /// # Errors
    /// The driver's first answer if it gives none of the counters.
    pub fn link_errors(&self) -> Result<u64, Error> {
        let totals = self.read_fields(&symbol::FIELD_VALUES, NVLINK_TOTALS)?;
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

    /// Reads the number of PCIe packets that were sent again.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn pcie_replays(&self) -> Result<u64, Error> {
        self.read_value(&symbol::PCIE_REPLAYS, 0).map(u64::from)
    }

    /// Returns true if persistence mode is on: the driver keeps the card initialised while no
    /// process has it open. Otherwise the driver initialises the card again at its next use, and
    /// its volatile counters begin at zero.
    ///
    /// # Errors
    /// The driver's answer; `NOT_SUPPORTED` on Windows.
    pub fn is_persistent(&self) -> Result<bool, Error> {
        let enabled = sys::nvmlEnableState_enum_NVML_FEATURE_ENABLED;
        self.read_value(&symbol::PERSISTENCE, 0)
            .map(|mode| mode == enabled)
    }

    /// Reads the energy drawn since the driver was loaded, in millijoules.
    ///
    /// # Errors
    /// The driver's answer; `NOT_SUPPORTED` on cards before Volta.
    pub fn read_energy(&self) -> Result<u64, Error> {
        self.read_value(&symbol::ENERGY, 0)
    }

    /// Reads the number of uncorrectable errors in on-chip memory (SRAM) since the driver was
    /// loaded. This is the memory error counter that a MIG device has of its own.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn sram_uncorrected(&self) -> Result<u64, Error> {
        let mut count: c_ulonglong = 0;
        self.make_call(&symbol::ECC_AT, |get| {
            let kind = sys::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED;
            let since_load = sys::nvmlEccCounterType_enum_NVML_VOLATILE_ECC;
            let place = sys::nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_SRAM;
            // SAFETY: the handle is the driver's, the pointer is valid for one counter.
            unsafe { get(self.raw_handle(), kind, since_load, place, &raw mut count) }
        })?;
        Ok(count)
    }

    /// Reads several fields in one call. Each field has its own result.
    fn read_fields<const N: usize>(
        &self,
        symbol: &symbol::Symbol<symbol::GetFields>,
        wanted: [FieldId; N],
    ) -> Result<[Result<u64, Error>; N], Error> {
        let mut values = wanted.map(|FieldId(id)| nvmlFieldValue_t {
            fieldId: id,
            scopeId: 0,
            timestamp: 0,
            latencyUsec: 0,
            valueType: 0,
            nvmlReturn: 0,
            value: nvmlValue_t { ullVal: 0 },
        });
        let count = c_int::try_from(N).unwrap_or(c_int::MAX);
        self.make_call(symbol, |get| {
            // SAFETY: the handle is the driver's, the array has as many values as are told.
            unsafe { get(self.raw_handle(), count, values.as_mut_ptr()) }
        })?;
        // The call succeeds if it filled any field: the code of each field must be checked too.
        Ok(values.map(|value| {
            ReturnCode::check_return(value.nvmlReturn).map_err(|code| Error::Failed {
                call: symbol.symbol_names()[0].to_str().unwrap_or("?"),
                device: Some(self.handle_card()),
                code,
            })?;
            Ok(figure(&value))
        }))
    }
}

/// Returns the number in a field, for any of the value types.
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
