//! Errors of calls to the driver library, and NVML's return codes.

use std::fmt;

use nvml_wrapper_sys::bindings::{self as sys, nvmlReturn_t};

use model::CardRef;

/// Error of a call to the driver library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The library cannot be loaded.
    #[error("cannot load {path}: {reason}")]
    Open {
        /// Path of the library, or a name for the loader to find.
        path: String,
        /// The loader's message.
        reason: String,
    },
    /// The library lacks the symbol: the driver is older (or newer) than the call.
    #[error("the driver library has no {call}")]
    NoSymbol {
        /// Newest name of the symbol.
        call: &'static str,
    },
    /// The driver answered with an error code.
    #[error("{call}{}: {code}", OnDevice(*device))]
    Failed {
        /// Name of the symbol that was called.
        call: &'static str,
        /// Card of the call; `NotSupported` for calls that concern the whole driver.
        device: Option<CardRef>,
        /// The driver's return code.
        code: ReturnCode,
    },
}

/// Return code of NVML other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReturnCode(nvmlReturn_t);

struct OnDevice(Option<CardRef>);

// === impl Error ===

impl Error {
    /// Returns the name of the call; `dlopen` for a library that cannot be loaded.
    pub fn call_name(&self) -> &'static str {
        match self {
            Self::Open { .. } => "dlopen",
            Self::NoSymbol { call } | Self::Failed { call, .. } => call,
        }
    }

    /// Returns the driver's return code; `NotSupported` if the driver was not reached.
    pub fn return_code(&self) -> Option<ReturnCode> {
        match self {
            Self::Failed { code, .. } => Some(*code),
            Self::Open { .. } | Self::NoSymbol { .. } => None,
        }
    }

    /// Returns the return code as a text. Has a text for every error, also if the driver was not
    /// reached.
    pub fn code_name(&self) -> String {
        match self {
            Self::Open { .. } => "LIBRARY_NOT_FOUND".to_owned(),
            Self::NoSymbol { .. } => "FUNCTION_NOT_FOUND".to_owned(),
            Self::Failed { code, .. } => code.to_string(),
        }
    }

    /// Returns true if this card, driver or setup does not support the call.
    pub fn is_not_supported(&self) -> bool {
        match self {
            Self::NoSymbol { .. } => true,
            Self::Open { .. } => false,
            Self::Failed { code, .. } => matches!(
                *code,
                ReturnCode::NOT_SUPPORTED
                    | ReturnCode::FUNCTION_NOT_FOUND
                    | ReturnCode::ARGUMENT_VERSION_MISMATCH
                    | ReturnCode::DEPRECATED
                    | ReturnCode::VGPU_ECC_NOT_SUPPORTED
            ),
        }
    }

    /// Returns true if the card is gone, or unusable until the next reset.
    pub fn is_fatal(&self) -> bool {
        matches!(
            self.return_code(),
            Some(ReturnCode::GPU_IS_LOST | ReturnCode::RESET_REQUIRED | ReturnCode::GPU_NOT_FOUND)
        )
    }

    /// Returns true if the driver does not know the object of the call.
    pub fn is_not_found(&self) -> bool {
        self.return_code() == Some(ReturnCode::NOT_FOUND)
    }
}

impl fmt::Display for OnDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |device| write!(f, " on {device}"))
    }
}

// === impl Code ===

macro_rules! codes {
    ($($name:ident = $value:ident: $words:literal),* $(,)?) => {
        impl ReturnCode {
            $(#[doc = concat!("The driver's `", stringify!($value), "`: ", $words, ".")]
            pub const $name: Self = Self(sys::$value);)*

            /// NVML's name without the prefix `NVML_ERROR_`; `NotSupported` for a code that this version
            /// does not know.
            pub fn name(self) -> Option<&'static str> {
                match self { $(Self::$name => Some(stringify!($name)),)* _ => None }
            }

            /// Short description of the code.
            pub fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)* _ => "an error this version does not know" }
            }
        }
    };
}

codes! {
    UNINITIALIZED = nvmlReturn_enum_NVML_ERROR_UNINITIALIZED: "the library was not initialised",
    INVALID_ARGUMENT = nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT: "an argument is invalid",
    NOT_SUPPORTED = nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED: "not supported on this device",
    NO_PERMISSION = nvmlReturn_enum_NVML_ERROR_NO_PERMISSION: "no permission",
    ALREADY_INITIALIZED = nvmlReturn_enum_NVML_ERROR_ALREADY_INITIALIZED: "initialised already",
    NOT_FOUND = nvmlReturn_enum_NVML_ERROR_NOT_FOUND: "no such object",
    INSUFFICIENT_SIZE = nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE: "the buffer is too small",
    INSUFFICIENT_POWER = nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_POWER: "a power cable is missing",
    DRIVER_NOT_LOADED = nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED: "the kernel driver is not loaded",
    TIMEOUT = nvmlReturn_enum_NVML_ERROR_TIMEOUT: "the time given is over",
    IRQ_ISSUE = nvmlReturn_enum_NVML_ERROR_IRQ_ISSUE: "the kernel found an interrupt problem",
    LIBRARY_NOT_FOUND = nvmlReturn_enum_NVML_ERROR_LIBRARY_NOT_FOUND: "a library of the driver is missing",
    FUNCTION_NOT_FOUND = nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND: "the driver has no such function",
    CORRUPTED_INFOROM = nvmlReturn_enum_NVML_ERROR_CORRUPTED_INFOROM: "the card's info ROM is damaged",
    GPU_IS_LOST = nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST: "the card fell off the bus",
    RESET_REQUIRED = nvmlReturn_enum_NVML_ERROR_RESET_REQUIRED: "the card needs a reset",
    OPERATING_SYSTEM = nvmlReturn_enum_NVML_ERROR_OPERATING_SYSTEM: "the operating system blocked the card",
    LIB_RM_VERSION_MISMATCH = nvmlReturn_enum_NVML_ERROR_LIB_RM_VERSION_MISMATCH: "library and kernel driver have different versions",
    IN_USE = nvmlReturn_enum_NVML_ERROR_IN_USE: "in use",
    MEMORY = nvmlReturn_enum_NVML_ERROR_MEMORY: "out of memory",
    NO_DATA = nvmlReturn_enum_NVML_ERROR_NO_DATA: "no data",
    VGPU_ECC_NOT_SUPPORTED = nvmlReturn_enum_NVML_ERROR_VGPU_ECC_NOT_SUPPORTED: "ECC stands in the way of a vGPU",
    INSUFFICIENT_RESOURCES = nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_RESOURCES: "resources ran out",
    FREQ_NOT_SUPPORTED = nvmlReturn_enum_NVML_ERROR_FREQ_NOT_SUPPORTED: "frequency not supported",
    ARGUMENT_VERSION_MISMATCH = nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH: "the driver wants another version of a structure",
    DEPRECATED = nvmlReturn_enum_NVML_ERROR_DEPRECATED: "no longer supported",
    NOT_READY = nvmlReturn_enum_NVML_ERROR_NOT_READY: "not ready yet",
    GPU_NOT_FOUND = nvmlReturn_enum_NVML_ERROR_GPU_NOT_FOUND: "no such card",
    INVALID_STATE = nvmlReturn_enum_NVML_ERROR_INVALID_STATE: "not possible in this state",
    RESET_TYPE_NOT_SUPPORTED = nvmlReturn_enum_NVML_ERROR_RESET_TYPE_NOT_SUPPORTED: "this kind of reset is not supported",
    UNKNOWN = nvmlReturn_enum_NVML_ERROR_UNKNOWN: "an internal error of the driver",
}

impl ReturnCode {
    /// Returns `Ok` for success, else the code.
    pub(crate) fn check_return(code: nvmlReturn_t) -> Result<(), Self> {
        if code == sys::nvmlReturn_enum_NVML_SUCCESS {
            Ok(())
        } else {
            Err(Self(code))
        }
    }

    pub(crate) fn raw_code(self) -> nvmlReturn_t {
        self.0
    }
}

impl fmt::Display for ReturnCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "ERROR_{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: nvmlReturn_t) -> Error {
        Error::Failed {
            call: "nvmlDeviceGetUUID",
            device: Some(CardRef::Index(2)),
            code: ReturnCode(code),
        }
    }

    #[test]
    fn says_what_was_asked_of_which_card_and_the_answer() {
        assert_eq!(
            failed(15).to_string(),
            "nvmlDeviceGetUUID on 2: GPU_IS_LOST"
        );
        assert_eq!(
            failed(12345).to_string(),
            "nvmlDeviceGetUUID on 2: ERROR_12345"
        );
    }

    #[test]
    fn a_lost_card_is_fatal_and_a_missing_feature_is_not() {
        assert!(failed(15).is_fatal() && failed(16).is_fatal() && failed(28).is_fatal());
        assert!(!failed(3).is_fatal() && !failed(999).is_fatal());
        assert!(failed(3).is_not_supported() && !failed(15).is_not_supported());
        assert!(Error::NoSymbol { call: "nvmlNew" }.is_not_supported());
    }
}
