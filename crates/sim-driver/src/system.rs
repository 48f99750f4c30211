//! Functions of the whole driver: initialisation, shutdown, versions, error texts.

use std::ffi::{CStr, c_char, c_int, c_uint};

use nvml_wrapper_sys::bindings::{
    nvmlConfComputeSystemCaps_t, nvmlConfComputeSystemState_t, nvmlExcludedDeviceInfo_t,
    nvmlHwbcEntry_t, nvmlReturn_t, nvmlSystemConfComputeSettings_v1_t,
    nvmlSystemDriverBranchInfo_v1_t,
};

use super::{
    call,
    code::{self, INSUFFICIENT_SIZE, INVALID_ARGUMENT},
    nvml, session,
    wire::{Handle, Maybe, Out, TextOut, chars, mark_of},
};

nvml! {
    plain nvmlInit_v2, nvmlInit: () |name| {
        call::begin_early(name)?;
        session::with_session(session::DriverSession::count_init)
    };
    plain nvmlInitWithFlags: (_flags: c_uint) |name| {
        call::begin_early(name)?;
        session::with_session(session::DriverSession::count_init)
    };
    plain nvmlShutdown: () |name| {
        call::begin_early(name)?;
        session::with_session(session::DriverSession::shutdown)
    };
    system nvmlSystemGetDriverVersion: (text: TextOut, length: c_uint) |state|
        text.set(length, &state.driver.version);
    system nvmlSystemGetNVMLVersion: (text: TextOut, length: c_uint) |state|
        text.set(length, &state.driver.nvml);
    system nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2: (version: Out<c_int>) |state| version.set(state.driver.cuda);
    system nvmlDeviceGetCount_v2, nvmlDeviceGetCount: (count: Out<c_uint>) |state|
        count.set(c_uint::try_from(state.gpus.len()).map_err(|_| code::UNKNOWN)?);
    system nvmlUnitGetCount: (count: Out<c_uint>) |_state| count.set(0);
    system nvmlGetExcludedDeviceCount, nvmlGetBlacklistDeviceCount: (count: Out<c_uint>) |_state| count.set(0);
    // The driver has no excluded cards, no S-class units and no host interface cards.
    system nvmlGetExcludedDeviceInfoByIndex, nvmlGetBlacklistDeviceInfoByIndex: (_index: c_uint, _info: Out<nvmlExcludedDeviceInfo_t>) |_state| Err(INVALID_ARGUMENT);
    system nvmlUnitGetHandleByIndex: (_index: c_uint, _unit: Out<Handle>) |_state| Err(INVALID_ARGUMENT);
    system nvmlSystemGetHicVersion: (count: Out<c_uint>, _entries: Maybe<nvmlHwbcEntry_t>) |_state| count.set(0);
    system nvmlSystemGetDriverBranch: (info: Out<nvmlSystemDriverBranchInfo_v1_t>, length: c_uint) |state| {
        info.check_version(1)?;
        let branch = branch(&state.driver.version);
        let room = usize::try_from(length).map_err(|_| INVALID_ARGUMENT)?;
        (branch.len() < room).then_some(()).ok_or(INSUFFICIENT_SIZE)?;
        let version = mark_of::<nvmlSystemDriverBranchInfo_v1_t>(1);
        info.set(nvmlSystemDriverBranchInfo_v1_t { version, branch: chars(&branch) })
    };
    // Confidential computing is off, and neither processor nor cards support it.
    system nvmlSystemGetConfComputeCapabilities: (caps: Out<nvmlConfComputeSystemCaps_t>) |_state|
        caps.set(nvmlConfComputeSystemCaps_t { cpuCaps: 0, gpusCaps: 0 });
    system nvmlSystemGetConfComputeState: (found: Out<nvmlConfComputeSystemState_t>) |_state|
        found.set(nvmlConfComputeSystemState_t { environment: 0, ccFeature: 0, devToolsMode: 0 });
    system nvmlSystemGetConfComputeSettings: (settings: Out<nvmlSystemConfComputeSettings_v1_t>) |_state| {
        settings.check_version(1)?;
        let version = mark_of::<nvmlSystemConfComputeSettings_v1_t>(1);
        settings.set(nvmlSystemConfComputeSettings_v1_t { version, environment: 0, ccFeature: 0, devToolsMode: 0, multiGpuMode: 0 })
    };
}

/// Text of a code: a C string with static lifetime.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlErrorString(result: nvmlReturn_t) -> *const c_char {
    error_text(result).as_ptr()
}

/// Branch of a driver version: `r580_00` for `580.95.05`.
fn branch(version: &str) -> String {
    let (major, _) = version.split_once('.').unwrap_or((version, ""));
    format!("r{major}_00")
}

fn error_text(result: nvmlReturn_t) -> &'static CStr {
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
