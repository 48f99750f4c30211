//! Table of the NVML symbols that the product calls, with their C signatures. This is the only
//! place that ties a name to a signature.
//!
//! Names are listed newest first. An older name is listed only if it takes the same arguments and
//! writes no more bytes than the newest one.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_ulonglong};

use nvml_wrapper_sys::bindings::{self as sys, nvmlDevice_t, nvmlEventSet_t, nvmlReturn_t};

/// Symbol with all its names and the type of its function pointer.
#[derive(Debug)]
pub(crate) struct Symbol<F> {
    names: &'static [&'static CStr],
    signature: std::marker::PhantomData<F>,
}

/// Call without arguments.
pub(crate) type CallPlain = unsafe extern "C" fn() -> nvmlReturn_t;
/// Call that writes a version text.
pub(crate) type GetVersionText = unsafe extern "C" fn(*mut c_char, c_uint) -> nvmlReturn_t;
/// Call that writes one value about the whole driver.
pub(crate) type GetGlobal<T> = unsafe extern "C" fn(*mut T) -> nvmlReturn_t;
/// Call that writes one value about a device.
pub(crate) type GetValue<T> = unsafe extern "C" fn(nvmlDevice_t, *mut T) -> nvmlReturn_t;
/// Call that writes one value about a numbered part of a device.
pub(crate) type GetAt<T> = unsafe extern "C" fn(nvmlDevice_t, c_uint, *mut T) -> nvmlReturn_t;
/// Call that writes two values about a device.
pub(crate) type GetTwo<T> = unsafe extern "C" fn(nvmlDevice_t, *mut T, *mut T) -> nvmlReturn_t;
/// Call that writes a text about a device.
pub(crate) type GetText = unsafe extern "C" fn(nvmlDevice_t, *mut c_char, c_uint) -> nvmlReturn_t;

/// Call that fills a list of fields of a device.
pub(crate) type GetFields =
    unsafe extern "C" fn(nvmlDevice_t, c_int, *mut sys::nvmlFieldValue_t) -> nvmlReturn_t;
/// Call that writes the list of processes on a device.
pub(crate) type GetProcesses =
    unsafe extern "C" fn(nvmlDevice_t, *mut c_uint, *mut sys::nvmlProcessInfo_t) -> nvmlReturn_t;

// === impl Symbol ===

impl<F> Symbol<F> {
    /// Ties names to a signature.
    ///
    /// # Safety
    /// `F` must be the function pointer type of every one of the names, and there must be a name.
    const unsafe fn new(names: &'static [&'static CStr]) -> Self {
        Self {
            names,
            signature: std::marker::PhantomData,
        }
    }

    /// Returns the names, newest first; never empty.
    pub(crate) fn symbol_names(&self) -> &'static [&'static CStr] {
        self.names
    }
}

macro_rules! symbols {
    ($($symbol:ident: $signature:ty = $($name:literal),+;)*) => {
        $(
            // SAFETY: name and signature are those of nvml.h.
            pub(crate) const $symbol: Symbol<$signature> = unsafe { Symbol::new(&[$($name),+]) };
        )*
    };
}

symbols! {
    INIT: CallPlain = c"nvmlInit_v2", c"nvmlInit";
    SHUTDOWN: CallPlain = c"nvmlShutdown";
    ERROR_STRING: unsafe extern "C" fn(nvmlReturn_t) -> *const c_char = c"nvmlErrorString";
    DRIVER_VERSION: GetVersionText = c"nvmlSystemGetDriverVersion";
    CUDA_VERSION: GetGlobal<c_int> = c"nvmlSystemGetCudaDriverVersion_v2", c"nvmlSystemGetCudaDriverVersion";
    COUNT: GetGlobal<c_uint> = c"nvmlDeviceGetCount_v2", c"nvmlDeviceGetCount";
    BY_INDEX: unsafe extern "C" fn(c_uint, *mut nvmlDevice_t) -> nvmlReturn_t =
        c"nvmlDeviceGetHandleByIndex_v2", c"nvmlDeviceGetHandleByIndex";
    BY_PCI: unsafe extern "C" fn(*const c_char, *mut nvmlDevice_t) -> nvmlReturn_t =
        c"nvmlDeviceGetHandleByPciBusId_v2", c"nvmlDeviceGetHandleByPciBusId";

    UUID: GetText = c"nvmlDeviceGetUUID";
    NAME: GetText = c"nvmlDeviceGetName";
    INDEX: GetValue<c_uint> = c"nvmlDeviceGetIndex";
    MINOR: GetValue<c_uint> = c"nvmlDeviceGetMinorNumber";
    DISPLAY_MODE: GetValue<c_uint> = c"nvmlDeviceGetDisplayMode";
    // v2 writes fewer bytes than v3. Both structures begin with the numbers that are read.
    PCI_INFO: GetValue<sys::nvmlPciInfo_t> = c"nvmlDeviceGetPciInfo_v3", c"nvmlDeviceGetPciInfo_v2";
    COMPUTE_CAPABILITY: GetTwo<c_int> = c"nvmlDeviceGetCudaComputeCapability";

    MEMORY: GetValue<sys::nvmlMemory_t> = c"nvmlDeviceGetMemoryInfo";
    MEMORY_V2: GetValue<sys::nvmlMemory_v2_t> = c"nvmlDeviceGetMemoryInfo_v2";
    TEMPERATURE: GetAt<c_uint> = c"nvmlDeviceGetTemperature";
    POWER: GetValue<c_uint> = c"nvmlDeviceGetPowerUsage";
    UTILIZATION: GetValue<sys::nvmlUtilization_t> = c"nvmlDeviceGetUtilizationRates";
    ECC_ERRORS: unsafe extern "C" fn(nvmlDevice_t, c_uint, c_uint, *mut c_ulonglong) -> nvmlReturn_t =
        c"nvmlDeviceGetTotalEccErrors";

    REMAPPED_ROWS: unsafe extern "C" fn(nvmlDevice_t, *mut c_uint, *mut c_uint, *mut c_uint, *mut c_uint) -> nvmlReturn_t =
        c"nvmlDeviceGetRemappedRows";
    RETIREMENT_PENDING: GetValue<c_uint> = c"nvmlDeviceGetRetiredPagesPendingStatus";
    ADDRESSING_MODE: GetValue<sys::nvmlDeviceAddressingMode_t> = c"nvmlDeviceGetAddressingMode";
    FIELD_VALUES: GetFields = c"nvmlDeviceGetFieldValues";
    FABRIC_V1: GetValue<sys::nvmlGpuFabricInfo_t> = c"nvmlDeviceGetGpuFabricInfo";
    CLOCK_REASONS: GetValue<c_ulonglong> =
        c"nvmlDeviceGetCurrentClocksEventReasons", c"nvmlDeviceGetCurrentClocksThrottleReasons";
    PCIE_REPLAYS: GetValue<c_uint> = c"nvmlDeviceGetPcieReplayCounter";
    PERSISTENCE: GetValue<c_uint> = c"nvmlDeviceGetPersistenceMode";
    ENERGY: GetValue<c_ulonglong> = c"nvmlDeviceGetTotalEnergyConsumption";
    ECC_AT: unsafe extern "C" fn(nvmlDevice_t, c_uint, c_uint, c_uint, *mut c_ulonglong) -> nvmlReturn_t =
        c"nvmlDeviceGetMemoryErrorCounter";
    // The forms before v2 have smaller entries, without the two instance ids: they do not fit here.
    COMPUTE_PROCESSES: GetProcesses =
        c"nvmlDeviceGetComputeRunningProcesses_v3", c"nvmlDeviceGetComputeRunningProcesses_v2";
    MPS_PROCESSES: GetProcesses =
        c"nvmlDeviceGetMPSComputeRunningProcesses_v3", c"nvmlDeviceGetMPSComputeRunningProcesses_v2";

    ANCESTOR: unsafe extern "C" fn(nvmlDevice_t, nvmlDevice_t, *mut c_uint) -> nvmlReturn_t =
        c"nvmlDeviceGetTopologyCommonAncestor";
    NVLINK_STATE: GetAt<c_uint> = c"nvmlDeviceGetNvLinkState";
    NVLINK_REMOTE_KIND: GetAt<c_uint> = c"nvmlDeviceGetNvLinkRemoteDeviceType";
    NVLINK_REMOTE_PCI: GetAt<sys::nvmlPciInfo_t> =
        c"nvmlDeviceGetNvLinkRemotePciInfo_v2", c"nvmlDeviceGetNvLinkRemotePciInfo";

    MEMORY_AFFINITY: unsafe extern "C" fn(nvmlDevice_t, c_uint, *mut c_ulong, c_uint) -> nvmlReturn_t =
        c"nvmlDeviceGetMemoryAffinity";
    CPU_AFFINITY: unsafe extern "C" fn(nvmlDevice_t, c_uint, *mut c_ulong) -> nvmlReturn_t =
        c"nvmlDeviceGetCpuAffinity";

    MIG_MODE: GetTwo<c_uint> = c"nvmlDeviceGetMigMode";
    MIG_MAX: GetValue<c_uint> = c"nvmlDeviceGetMaxMigDeviceCount";
    MIG_BY_INDEX: GetAt<nvmlDevice_t> = c"nvmlDeviceGetMigDeviceHandleByIndex";
    GPU_INSTANCE_ID: GetValue<c_uint> = c"nvmlDeviceGetGpuInstanceId";
    COMPUTE_INSTANCE_ID: GetValue<c_uint> = c"nvmlDeviceGetComputeInstanceId";
    ATTRIBUTES: GetValue<sys::nvmlDeviceAttributes_t> =
        c"nvmlDeviceGetAttributes_v2", c"nvmlDeviceGetAttributes";
    GPU_INSTANCE_BY_ID: GetAt<sys::nvmlGpuInstance_t> = c"nvmlDeviceGetGpuInstanceById";
    GPU_INSTANCE_INFO: unsafe extern "C" fn(sys::nvmlGpuInstance_t, *mut sys::nvmlGpuInstanceInfo_t) -> nvmlReturn_t =
        c"nvmlGpuInstanceGetInfo";
    GPU_INSTANCE_PROFILE: GetAt<sys::nvmlGpuInstanceProfileInfo_t> =
        c"nvmlDeviceGetGpuInstanceProfileInfo";
    GPU_INSTANCE_PROFILE_V2: GetAt<sys::nvmlGpuInstanceProfileInfo_v2_t> =
        c"nvmlDeviceGetGpuInstanceProfileInfoV";
    PLACEMENTS: unsafe extern "C" fn(nvmlDevice_t, c_uint, *mut sys::nvmlGpuInstancePlacement_t, *mut c_uint) -> nvmlReturn_t =
        c"nvmlDeviceGetGpuInstancePossiblePlacements_v2";

    EVENT_TYPES: GetValue<c_ulonglong> = c"nvmlDeviceGetSupportedEventTypes";
    EVENT_REGISTER: unsafe extern "C" fn(nvmlDevice_t, c_ulonglong, nvmlEventSet_t) -> nvmlReturn_t =
        c"nvmlDeviceRegisterEvents";
    EVENT_SET_CREATE: GetGlobal<nvmlEventSet_t> = c"nvmlEventSetCreate";
    // The older form leaves out the two instance ids at the end of the structure.
    EVENT_SET_WAIT: unsafe extern "C" fn(nvmlEventSet_t, *mut sys::nvmlEventData_t, c_uint) -> nvmlReturn_t =
        c"nvmlEventSetWait_v2", c"nvmlEventSetWait";
    EVENT_SET_FREE: unsafe extern "C" fn(nvmlEventSet_t) -> nvmlReturn_t = c"nvmlEventSetFree";

    // Board facts: read once per card, for `ostler sim capture`, or by the slower tiers of checks.
    NVML_VERSION: GetVersionText = c"nvmlSystemGetNVMLVersion";
    SERIAL: GetText = c"nvmlDeviceGetSerial";
    VBIOS: GetText = c"nvmlDeviceGetVbiosVersion";
    PART_NUMBER: GetText = c"nvmlDeviceGetBoardPartNumber";
    INFOROM: GetText = c"nvmlDeviceGetInforomImageVersion";
    BRAND: GetValue<c_uint> = c"nvmlDeviceGetBrand";
    ARCHITECTURE: GetValue<c_uint> = c"nvmlDeviceGetArchitecture";
    CORES: GetValue<c_uint> = c"nvmlDeviceGetNumGpuCores";
    BUS_WIDTH: GetValue<c_uint> = c"nvmlDeviceGetMemoryBusWidth";
    FANS: GetValue<c_uint> = c"nvmlDeviceGetNumFans";
    VIRTUALIZATION: GetValue<c_uint> = c"nvmlDeviceGetVirtualizationMode";
    MEMORY_NODE: GetValue<c_uint> = c"nvmlDeviceGetNumaNodeId";
    BAR1: GetValue<sys::nvmlBAR1Memory_t> = c"nvmlDeviceGetBAR1MemoryInfo";
    ECC_MODE: GetTwo<c_uint> = c"nvmlDeviceGetEccMode";
    POWER_LIMITS: GetTwo<c_uint> = c"nvmlDeviceGetPowerManagementLimitConstraints";
    CLOCK: GetAt<c_uint> = c"nvmlDeviceGetClockInfo";
    MAX_CLOCK: GetAt<c_uint> = c"nvmlDeviceGetMaxClockInfo";
    THRESHOLD: GetAt<c_uint> = c"nvmlDeviceGetTemperatureThreshold";
    PERFORMANCE_STATE: GetValue<c_uint> = c"nvmlDeviceGetPerformanceState";
    PCIE_GENERATION: GetValue<c_uint> = c"nvmlDeviceGetCurrPcieLinkGeneration";
    PCIE_WIDTH: GetValue<c_uint> = c"nvmlDeviceGetCurrPcieLinkWidth";
    MAX_PCIE_GENERATION: GetValue<c_uint> = c"nvmlDeviceGetMaxPcieLinkGeneration";
    MAX_PCIE_WIDTH: GetValue<c_uint> = c"nvmlDeviceGetMaxPcieLinkWidth";
    NVLINK_VERSION: GetAt<c_uint> = c"nvmlDeviceGetNvLinkVersion";
    FABRIC: GetValue<sys::nvmlGpuFabricInfo_v2_t> = c"nvmlDeviceGetGpuFabricInfoV";
}
