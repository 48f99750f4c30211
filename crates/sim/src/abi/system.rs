//! Functions for the whole driver: starting and ending, versions, error texts.

use std::ffi::{CStr, c_char, c_int, c_uint};

use nvml_wrapper_sys::bindings::nvmlReturn_t;

use super::{
    call, code, nvml, session,
    wire::{Out, Text},
};

nvml! {
    plain nvmlInit_v2, nvmlInit: () |name| {
        call::begin_early(name)?;
        session::with(session::Session::init)
    };
    plain nvmlInitWithFlags: (_flags: c_uint) |name| {
        call::begin_early(name)?;
        session::with(session::Session::init)
    };
    plain nvmlShutdown: () |name| {
        call::begin_early(name)?;
        session::with(session::Session::shutdown)
    };
    system nvmlSystemGetDriverVersion: (text: Text, length: c_uint) |state|
        text.set(length, &state.driver.version);
    system nvmlSystemGetNVMLVersion: (text: Text, length: c_uint) |state|
        text.set(length, &state.driver.nvml);
    system nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2: (version: Out<c_int>) |state| version.set(state.driver.cuda);
    system nvmlDeviceGetCount_v2, nvmlDeviceGetCount: (count: Out<c_uint>) |state|
        count.set(c_uint::try_from(state.gpus.len()).map_err(|_| code::UNKNOWN)?);
    system nvmlUnitGetCount: (count: Out<c_uint>) |_state| count.set(0);
    system nvmlGetExcludedDeviceCount: (count: Out<c_uint>) |_state| count.set(0);
}

/// The text of a code, as a C string that lives for ever.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlErrorString(result: nvmlReturn_t) -> *const c_char {
    describe(result).as_ptr()
}

fn describe(result: nvmlReturn_t) -> &'static CStr {
    match result {
        0 => c"Success",
        1 => c"Uninitialized",
        2 => c"Invalid Argument",
        3 => c"Not Supported",
        4 => c"Insufficient Permissions",
        5 => c"Already Initialized",
        6 => c"Not Found",
        7 => c"Insufficient Size",
        8 => c"Insufficient External Power",
        9 => c"Driver Not Loaded",
        10 => c"Timeout",
        11 => c"Interrupt Request Issue",
        12 => c"NVML Shared Library Not Found",
        13 => c"Function Not Found",
        14 => c"Corrupted infoROM",
        15 => c"GPU is lost",
        16 => c"GPU requires reset",
        17 => c"GPU access blocked by the operating system",
        18 => c"Driver/library version mismatch",
        19 => c"In use by another client",
        20 => c"Insufficient Memory",
        21 => c"No data",
        22 => c"Function unavailable due to vGPU ECC",
        23 => c"Insufficient Resources",
        24 => c"Frequency Not Supported",
        25 => c"Argument version mismatch",
        26 => c"Deprecated",
        27 => c"Not Ready",
        28 => c"GPU Not Found",
        29 => c"Invalid State",
        30 => c"Reset Type Not Supported",
        _ => c"Unknown Error",
    }
}
