//! NVML's return codes under short names.

use nvml_wrapper_sys::bindings as sys;

/// Result of an NVML function. Values go through out parameters, so success has no value.
pub(super) type NvmlResult<T = ()> = Result<T, sys::nvmlReturn_t>;

pub(super) const SUCCESS: u32 = sys::nvmlReturn_enum_NVML_SUCCESS;
pub(super) const UNINITIALIZED: u32 = sys::nvmlReturn_enum_NVML_ERROR_UNINITIALIZED;
pub(super) const INVALID_ARGUMENT: u32 = sys::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
pub(super) const NOT_SUPPORTED: u32 = sys::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED;
pub(super) const NOT_FOUND: u32 = sys::nvmlReturn_enum_NVML_ERROR_NOT_FOUND;
pub(super) const INSUFFICIENT_SIZE: u32 = sys::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE;
pub(super) const DRIVER_NOT_LOADED: u32 = sys::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED;
pub(super) const TIMEOUT: u32 = sys::nvmlReturn_enum_NVML_ERROR_TIMEOUT;
pub(super) const GPU_IS_LOST: u32 = sys::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST;
pub(super) const VERSION_MISMATCH: u32 = sys::nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
pub(super) const NO_PERMISSION: u32 = sys::nvmlReturn_enum_NVML_ERROR_NO_PERMISSION;
pub(super) const IN_USE: u32 = sys::nvmlReturn_enum_NVML_ERROR_IN_USE;
pub(super) const INSUFFICIENT_RESOURCES: u32 =
    sys::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_RESOURCES;
pub(super) const UNKNOWN: u32 = sys::nvmlReturn_enum_NVML_ERROR_UNKNOWN;
