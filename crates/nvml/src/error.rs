//! What the driver answers when it does not do what it was asked.

use std::fmt;

use nvml_wrapper_sys::bindings::{self as sys, nvmlReturn_t};

use model::CardRef;

/// Why a call gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The library could not be loaded.
    #[error("cannot load {path}: {reason}")]
    Open {
        /// What was asked for: a path, or a name for the loader to find.
        path: String,
        /// What the loader says.
        reason: String,
    },
    /// The library does not have the call: the driver is older (or newer) than the call.
    #[error("the driver library has no {call}")]
    NoSymbol {
        /// The newest name of the call.
        call: &'static str,
    },
    /// The driver answered with an error.
    #[error("{call}{}: {code}", OnDevice(*device))]
    Failed {
        /// The symbol that was called.
        call: &'static str,
        /// The card it was called for.
        device: Option<CardRef>,
        /// The driver's answer.
        code: Code,
    },
}

/// A return code of NVML that is not success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(nvmlReturn_t);

struct OnDevice(Option<CardRef>);

// === impl Error ===

impl Error {
    /// The name of the call; the loader's for a library that could not be loaded.
    pub fn call(&self) -> &'static str {
        match self {
            Self::Open { .. } => "dlopen",
            Self::NoSymbol { call } | Self::Failed { call, .. } => call,
        }
    }

    /// The driver's code, where the driver was reached.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Failed { code, .. } => Some(*code),
            Self::Open { .. } | Self::NoSymbol { .. } => None,
        }
    }

    /// The code as a text, also where the driver was not reached.
    pub fn code_name(&self) -> String {
        match self {
            Self::Open { .. } => "LIBRARY_NOT_FOUND".to_owned(),
            Self::NoSymbol { .. } => "FUNCTION_NOT_FOUND".to_owned(),
            Self::Failed { code, .. } => code.to_string(),
        }
    }

    /// Whether this card, driver or set-up just does not have what was asked for.
    pub fn is_not_supported(&self) -> bool {
        match self {
            Self::NoSymbol { .. } => true,
            Self::Open { .. } => false,
            Self::Failed { code, .. } => matches!(
                *code,
                Code::NOT_SUPPORTED
                    | Code::FUNCTION_NOT_FOUND
                    | Code::ARGUMENT_VERSION_MISMATCH
                    | Code::DEPRECATED
                    | Code::VGPU_ECC_NOT_SUPPORTED
            ),
        }
    }

    /// Whether the card is gone, or unusable until it is reset.
    pub fn is_fatal(&self) -> bool {
        matches!(
            self.code(),
            Some(Code::GPU_IS_LOST | Code::RESET_REQUIRED | Code::GPU_NOT_FOUND)
        )
    }

    /// Whether the driver does not know the thing that was asked for.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(Code::NOT_FOUND)
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
        impl Code {
            $(#[doc = concat!("The driver's `", stringify!($value), "`: ", $words, ".")]
            pub const $name: Self = Self(sys::$value);)*

            /// The vendor's name without its prefix; `None` for a code that is not known here.
            pub fn name(self) -> Option<&'static str> {
                match self { $(Self::$name => Some(stringify!($name)),)* _ => None }
            }

            /// What it means, in a few words.
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

impl Code {
    /// `Ok` for success, else the code.
    pub(crate) fn check(code: nvmlReturn_t) -> Result<(), Self> {
        if code == sys::nvmlReturn_enum_NVML_SUCCESS {
            Ok(())
        } else {
            Err(Self(code))
        }
    }

    pub(crate) fn raw(self) -> nvmlReturn_t {
        self.0
    }
}

impl fmt::Display for Code {
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
            code: Code(code),
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
