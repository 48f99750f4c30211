//! Functions that the simulated driver does not support. They check their arguments and apply
//! faults as all others do, and return `NOT_SUPPORTED`, so that no program misses a symbol.
//!
//! The lists have each function's parameters after the handle: a pointer that must not be NULL
//! (`Ptr`), one that may be NULL (`List`), a structure of this size and version (`Marked`), a
//! handle that the driver never returns (`Nothing`), or a number.

use std::ffi::{c_uint, c_ulonglong};

use super::{
    code::{INVALID_ARGUMENT, NOT_SUPPORTED, NvmlResult},
    nvml,
    wire::{Arg, Handle, Marked, Maybe, Out},
};

type Ptr = Out<u8>;
type List = Maybe<u8>;

/// Handle of a kind that has no objects: S-class units and GPM samples.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Nothing(Handle);

// === impl Nothing ===

impl Arg for Nothing {
    fn present(&self) -> NvmlResult {
        Err(INVALID_ARGUMENT)
    }
}

macro_rules! unsupported {
    ($($kind:ident $name:ident($($type:ty),*);)*) => {
        $(unsupported!(@ $kind $name [$($type),*]);)*
    };
    (@ $kind:ident $name:ident []) => {
        nvml! { $kind $name: () |_it| Err(NOT_SUPPORTED); }
    };
    (@ $kind:ident $name:ident [$a:ty]) => {
        nvml! { $kind $name: (a: $a) |_it| Err(NOT_SUPPORTED); }
    };
    (@ $kind:ident $name:ident [$a:ty, $b:ty]) => {
        nvml! { $kind $name: (a: $a, b: $b) |_it| Err(NOT_SUPPORTED); }
    };
    (@ $kind:ident $name:ident [$a:ty, $b:ty, $c:ty]) => {
        nvml! { $kind $name: (a: $a, b: $b, c: $c) |_it| Err(NOT_SUPPORTED); }
    };
    (@ $kind:ident $name:ident [$a:ty, $b:ty, $c:ty, $d:ty]) => {
        nvml! { $kind $name: (a: $a, b: $b, c: $c, d: $d) |_it| Err(NOT_SUPPORTED); }
    };
}

// Functions of a card.
unsupported! {
    device nvmlDeviceGetActiveVgpus(Ptr, List);
    device nvmlDeviceGetAutoBoostedClocksEnabled(Ptr, Ptr);
    device nvmlDeviceGetBridgeChipInfo(Ptr);
    device nvmlDeviceGetC2cModeInfoV(Ptr);
    device nvmlDeviceGetClkMonStatus(Ptr);
    device nvmlDeviceGetClockOffsets(Marked<24, 1>);
    device nvmlDeviceGetConfComputeGpuAttestationReport(Ptr);
    device nvmlDeviceGetConfComputeGpuCertificate(Ptr);
    device nvmlDeviceGetConfComputeMemSizeInfo(Ptr);
    device nvmlDeviceGetConfComputeProtectedMemoryUsage(Ptr);
    device nvmlDeviceGetCreatableVgpus(Ptr, List);
    device nvmlDeviceGetDramEncryptionMode(Marked<8, 1>, Marked<8, 1>);
    device nvmlDeviceGetDriverModel(Ptr, Ptr);
    device nvmlDeviceGetDriverModel_v2(Ptr, Ptr);
    device nvmlDeviceGetGpcClkMinMaxVfOffset(Ptr, Ptr);
    device nvmlDeviceGetGpcClkVfOffset(Ptr);
    device nvmlDeviceGetGpuOperationMode(Ptr, Ptr);
    device nvmlDeviceGetGridLicensableFeatures(Ptr);
    device nvmlDeviceGetGridLicensableFeatures_v2(Ptr);
    device nvmlDeviceGetGridLicensableFeatures_v3(Ptr);
    device nvmlDeviceGetGridLicensableFeatures_v4(Ptr);
    device nvmlDeviceGetHostVgpuMode(Ptr);
    device nvmlDeviceGetLastBBXFlushTime(Ptr, Ptr);
    device nvmlDeviceGetMemClkMinMaxVfOffset(Ptr, Ptr);
    device nvmlDeviceGetMemClkVfOffset(Ptr);
    device nvmlDeviceGetNvlinkBwMode(Marked<12, 1>);
    device nvmlDeviceGetNvlinkSupportedBwModes(Marked<28, 1>);
    device nvmlDeviceGetPgpuMetadataString(List, Ptr);
    device nvmlDeviceGetPlatformInfo(Marked<44, 2>);
    device nvmlDeviceGetPowerMizerMode_v1(Ptr);
    device nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts(Marked<16, 1>);
    device nvmlDeviceGetSupportedVgpus(Ptr, List);
    device nvmlDeviceGetVgpuCapabilities(c_uint, Ptr);
    device nvmlDeviceGetVgpuHeterogeneousMode(Marked<8, 1>);
    device nvmlDeviceGetVgpuInstancesUtilizationInfo(Marked<32, 1>);
    device nvmlDeviceGetVgpuMetadata(Ptr, Ptr);
    device nvmlDeviceGetVgpuProcessUtilization(c_ulonglong, Ptr, List);
    device nvmlDeviceGetVgpuProcessesUtilizationInfo(Marked<24, 1>);
    device nvmlDeviceGetVgpuSchedulerCapabilities(Ptr);
    device nvmlDeviceGetVgpuSchedulerLog(Ptr);
    device nvmlDeviceGetVgpuSchedulerState(Ptr);
    device nvmlDeviceGetVgpuTypeCreatablePlacements(c_uint, Marked<32, 2>);
    device nvmlDeviceGetVgpuTypeSupportedPlacements(c_uint, Marked<32, 2>);
    device nvmlDeviceGetVgpuUtilization(c_ulonglong, Ptr, Ptr, List);
    device nvmlDevicePowerSmoothingActivatePresetProfile(Marked<24, 1>);
    device nvmlDevicePowerSmoothingSetState(Marked<8, 1>);
    device nvmlDevicePowerSmoothingUpdatePresetProfileParam(Marked<24, 1>);
    device nvmlDeviceReadWritePRM_v1(Ptr);
    device nvmlDeviceResetGpuLockedClocks();
    device nvmlDeviceResetMemoryLockedClocks();
    device nvmlDeviceSetAPIRestriction(c_uint, c_uint);
    device nvmlDeviceSetAutoBoostedClocksEnabled(c_uint);
    device nvmlDeviceSetClockOffsets(Marked<24, 1>);
    device nvmlDeviceSetConfComputeUnprotectedMemSize(c_ulonglong);
    device nvmlDeviceSetDefaultAutoBoostedClocksEnabled(c_uint, c_uint);
    device nvmlDeviceSetDefaultFanSpeed_v2(c_uint);
    device nvmlDeviceSetDramEncryptionMode(Marked<8, 1>);
    device nvmlDeviceSetDriverModel(c_uint, c_uint);
    device nvmlDeviceSetFanControlPolicy(c_uint, c_uint);
    device nvmlDeviceSetFanSpeed_v2(c_uint, c_uint);
    device nvmlDeviceSetGpcClkVfOffset(c_uint);
    device nvmlDeviceSetGpuLockedClocks(c_uint, c_uint);
    device nvmlDeviceSetGpuOperationMode(c_uint);
    device nvmlDeviceSetMemClkVfOffset(c_uint);
    device nvmlDeviceSetMemoryLockedClocks(c_uint, c_uint);
    device nvmlDeviceSetNvLinkDeviceLowPowerThreshold(Ptr);
    device nvmlDeviceSetNvlinkBwMode(Marked<12, 1>);
    device nvmlDeviceSetPowerMizerMode_v1(Ptr);
    device nvmlDeviceSetTemperatureThreshold(c_uint, Ptr);
    device nvmlDeviceSetVgpuCapabilities(c_uint, c_uint);
    device nvmlDeviceSetVgpuHeterogeneousMode(Marked<8, 1>);
    device nvmlDeviceSetVgpuSchedulerState(Ptr);
    device nvmlDeviceSetVirtualizationMode(c_uint);
    device nvmlDeviceWorkloadPowerProfileClearRequestedProfiles(Marked<36, 1>);
    device nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(Marked<100, 1>);
    device nvmlDeviceWorkloadPowerProfileGetProfilesInfo(Marked<11256, 1>);
    device nvmlDeviceWorkloadPowerProfileSetRequestedProfiles(Marked<36, 1>);
    device nvmlGpmMigSampleGet(c_uint, Nothing);
    device nvmlGpmQueryIfStreamingEnabled(Ptr);
    device nvmlGpmSampleGet(Nothing);
    device nvmlGpmSetStreamingEnabled(c_uint);
    device nvmlVgpuTypeGetMaxInstances(c_uint, Ptr);
}

// Functions of a GPU instance.
unsupported! {
    part nvmlGpuInstanceGetActiveVgpus(Marked<16, 1>);
    part nvmlGpuInstanceGetCreatableVgpus(Marked<16, 1>);
    part nvmlGpuInstanceGetVgpuHeterogeneousMode(Marked<8, 1>);
    part nvmlGpuInstanceGetVgpuSchedulerLog(Marked<9632, 1>);
    part nvmlGpuInstanceGetVgpuSchedulerState(Marked<24, 1>);
    part nvmlGpuInstanceGetVgpuTypeCreatablePlacements(Marked<32, 1>);
    part nvmlGpuInstanceSetVgpuHeterogeneousMode(Marked<8, 1>);
    part nvmlGpuInstanceSetVgpuSchedulerState(Marked<24, 1>);
}

// Functions of vGPUs; the simulated driver has none.
unsupported! {
    system nvmlGetVgpuCompatibility(Ptr, Ptr, Ptr);
    system nvmlGetVgpuDriverCapabilities(c_uint, Ptr);
    system nvmlGetVgpuVersion(Ptr, Ptr);
    system nvmlSetVgpuVersion(Ptr);
    system nvmlVgpuInstanceClearAccountingPids(c_uint);
    system nvmlVgpuInstanceGetAccountingMode(c_uint, Ptr);
    system nvmlVgpuInstanceGetAccountingPids(c_uint, Ptr, List);
    system nvmlVgpuInstanceGetAccountingStats(c_uint, c_uint, Ptr);
    system nvmlVgpuInstanceGetEccMode(c_uint, Ptr);
    system nvmlVgpuInstanceGetEncoderCapacity(c_uint, Ptr);
    system nvmlVgpuInstanceGetEncoderSessions(c_uint, Ptr, List);
    system nvmlVgpuInstanceGetEncoderStats(c_uint, Ptr, Ptr, Ptr);
    system nvmlVgpuInstanceGetFBCSessions(c_uint, Ptr, List);
    system nvmlVgpuInstanceGetFBCStats(c_uint, Ptr);
    system nvmlVgpuInstanceGetFbUsage(c_uint, Ptr);
    system nvmlVgpuInstanceGetFrameRateLimit(c_uint, Ptr);
    system nvmlVgpuInstanceGetGpuInstanceId(c_uint, Ptr);
    system nvmlVgpuInstanceGetGpuPciId(c_uint, List, Ptr);
    system nvmlVgpuInstanceGetLicenseInfo(c_uint, Ptr);
    system nvmlVgpuInstanceGetLicenseInfo_v2(c_uint, Ptr);
    system nvmlVgpuInstanceGetLicenseStatus(c_uint, Ptr);
    system nvmlVgpuInstanceGetMdevUUID(c_uint, Ptr, c_uint);
    system nvmlVgpuInstanceGetMetadata(c_uint, Ptr, Ptr);
    system nvmlVgpuInstanceGetPlacementId(c_uint, Marked<8, 1>);
    system nvmlVgpuInstanceGetRuntimeStateSize(c_uint, Marked<16, 1>);
    system nvmlVgpuInstanceGetType(c_uint, Ptr);
    system nvmlVgpuInstanceGetUUID(c_uint, Ptr, c_uint);
    system nvmlVgpuInstanceGetVmDriverVersion(c_uint, Ptr, c_uint);
    system nvmlVgpuInstanceGetVmID(c_uint, Ptr, c_uint, Ptr);
    system nvmlVgpuInstanceSetEncoderCapacity(c_uint, c_uint);
    system nvmlVgpuTypeGetBAR1Info(c_uint, Marked<16, 1>);
    system nvmlVgpuTypeGetCapabilities(c_uint, c_uint, Ptr);
    system nvmlVgpuTypeGetClass(c_uint, List, Ptr);
    system nvmlVgpuTypeGetDeviceID(c_uint, Ptr, Ptr);
    system nvmlVgpuTypeGetFbReservation(c_uint, Ptr);
    system nvmlVgpuTypeGetFrameRateLimit(c_uint, Ptr);
    system nvmlVgpuTypeGetFramebufferSize(c_uint, Ptr);
    system nvmlVgpuTypeGetGpuInstanceProfileId(c_uint, Ptr);
    system nvmlVgpuTypeGetGspHeapSize(c_uint, Ptr);
    system nvmlVgpuTypeGetLicense(c_uint, Ptr, c_uint);
    system nvmlVgpuTypeGetMaxInstancesPerGpuInstance(Marked<12, 1>);
    system nvmlVgpuTypeGetMaxInstancesPerVm(c_uint, Ptr);
    system nvmlVgpuTypeGetName(c_uint, List, Ptr);
    system nvmlVgpuTypeGetNumDisplayHeads(c_uint, Ptr);
    system nvmlVgpuTypeGetResolution(c_uint, c_uint, Ptr, Ptr);
}

// Functions of S-class units; the simulated driver has none.
unsupported! {
    system nvmlUnitGetDevices(Nothing, Ptr, List);
    system nvmlUnitGetFanSpeedInfo(Nothing, Ptr);
    system nvmlUnitGetLedState(Nothing, Ptr);
    system nvmlUnitGetPsuInfo(Nothing, Ptr);
    system nvmlUnitGetTemperature(Nothing, c_uint, Ptr);
    system nvmlUnitGetUnitInfo(Nothing, Ptr);
    system nvmlUnitSetLedState(Nothing, c_uint);
}

// Functions of the whole driver.
unsupported! {
    system nvmlDeviceDiscoverGpus(Ptr);
    system nvmlDeviceModifyDrainState(Ptr, c_uint);
    system nvmlDeviceQueryDrainState(Ptr, Ptr);
    system nvmlDeviceRemoveGpu(Ptr);
    system nvmlDeviceRemoveGpu_v2(Ptr, c_uint, c_uint);
    system nvmlGpmMetricsGet(Ptr);
    system nvmlGpmSampleAlloc(Ptr);
    system nvmlGpmSampleFree(Nothing);
    system nvmlSystemEventSetCreate(Marked<16, 1>);
    system nvmlSystemEventSetFree(Marked<16, 1>);
    system nvmlSystemEventSetWait(Marked<32, 1>);
    system nvmlSystemGetConfComputeGpusReadyState(Ptr);
    system nvmlSystemGetConfComputeKeyRotationThresholdInfo(Ptr);
    system nvmlSystemGetNvlinkBwMode(Ptr);
    system nvmlSystemRegisterEvents(Marked<24, 1>);
    system nvmlSystemSetConfComputeGpusReadyState(c_uint);
    system nvmlSystemSetConfComputeKeyRotationThresholdInfo(Ptr);
    system nvmlSystemSetNvlinkBwMode(c_uint);
}
