//! Tests of initialisation, versions, device lookup and device facts.

use std::{
    ffi::{CStr, c_int, c_uint},
    mem::zeroed,
};

use nvml_wrapper_sys::bindings::*;
use sim::EccKind;

use crate::rig::*;

#[test]
fn initialising_is_counted() {
    let rig = Rig::cold("t4");
    let count = || number(|out| code!(rig.lib.nvmlDeviceGetCount_v2(out)));
    assert_eq!(count(), Err(UNINITIALIZED));
    assert_eq!(code!(rig.lib.nvmlShutdown()), UNINITIALIZED);
    ok!(rig.lib.nvmlInit_v2());
    ok!(rig.lib.nvmlInitWithFlags(0));
    ok!(rig.lib.nvmlShutdown());
    assert_eq!(count(), Ok(1));
    ok!(rig.lib.nvmlShutdown());
    assert_eq!(count(), Err(UNINITIALIZED));
    assert_eq!(code!(rig.lib.nvmlShutdown()), UNINITIALIZED);
}

#[test]
fn versions_are_those_of_the_profile() {
    let rig = Rig::new("dgx-a100");
    let driver = text(|b, n| code!(rig.lib.nvmlSystemGetDriverVersion(b, n)));
    let nvml = text(|b, n| code!(rig.lib.nvmlSystemGetNVMLVersion(b, n)));
    let cuda: Result<c_int, _> =
        number(|out| code!(rig.lib.nvmlSystemGetCudaDriverVersion_v2(out)));
    assert_eq!(driver.as_deref(), Ok("580.95.05"));
    assert_eq!(nvml.as_deref(), Ok("13.580.95.05"));
    assert_eq!(cuda, Ok(13000));
}

#[test]
fn codes_have_texts() {
    let rig = Rig::cold("t4");
    let describe = |code| {
        let text = code!(rig.lib.nvmlErrorString(code));
        // SAFETY: the library's texts have static lifetime.
        unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
    };
    assert_eq!(describe(GPU_IS_LOST), "GPU is lost");
    assert_eq!(describe(12345), "Unknown Error");
}

#[test]
fn cards_are_found_by_index_address_and_uuid() {
    let rig = Rig::new("dgx-a100");
    assert_eq!(
        number(|out| code!(rig.lib.nvmlDeviceGetCount_v2(out))),
        Ok(8_u32)
    );
    for gpu in rig.node.list_gpus().unwrap() {
        let device = rig.device(u32::try_from(gpu.index).unwrap());
        assert_eq!(rig.uuid(device), gpu.uuid);
        assert_eq!(rig.by_uuid(&gpu.uuid), (SUCCESS, device));
        assert_eq!(rig.by_pci(&gpu.pci.to_nvml_form()), (SUCCESS, device));
        assert_eq!(rig.by_pci(&gpu.pci.to_string()), (SUCCESS, device));
    }
    let mut device = std::ptr::null_mut();
    let beyond = code!(rig.lib.nvmlDeviceGetHandleByIndex_v2(8, &raw mut device));
    assert_eq!(beyond, INVALID_ARGUMENT);
    assert_eq!(rig.by_uuid("GPU-none").0, NOT_FOUND);
    assert_eq!(rig.by_pci("0000:ff:00.0").0, NOT_FOUND);
    assert_eq!(rig.by_pci("nonsense").0, INVALID_ARGUMENT);
}

#[test]
fn a_card_says_what_it_is() {
    let rig = Rig::new("dgx-a100");
    let device = rig.device(1);
    let lib = &rig.lib;
    let name = text(|b, n| code!(lib.nvmlDeviceGetName(device, b, n))).unwrap();
    assert_eq!(name, "NVIDIA A100-SXM4-40GB");
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetIndex(device, o))),
        Ok(1_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetMinorNumber(device, o))),
        Ok(1_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetBrand(device, o))),
        Ok(14_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetArchitecture(device, o))),
        Ok(7_u32)
    );
    assert_eq!(
        number::<u32>(|o| code!(lib.nvmlDeviceGetNumaNodeId(device, o))),
        Err(NOT_SUPPORTED)
    );
    let serial = text(|b, n| code!(lib.nvmlDeviceGetSerial(device, b, n))).unwrap();
    assert!(
        serial.len() == 13 && serial.bytes().all(|b| b.is_ascii_digit()),
        "{serial}"
    );
    let (mut major, mut minor) = (0, 0);
    ok!(lib.nvmlDeviceGetCudaComputeCapability(device, &raw mut major, &raw mut minor));
    assert_eq!((major, minor), (8, 0));
    let mut short = [0; 4];
    let small = code!(lib.nvmlDeviceGetName(device, short.as_mut_ptr(), 4));
    assert_eq!(small, INSUFFICIENT_SIZE);
    assert_eq!(
        code!(lib.nvmlDeviceGetMinorNumber(device, std::ptr::null_mut())),
        INVALID_ARGUMENT
    );
}

#[test]
fn a_card_says_where_it_sits() {
    let rig = Rig::new("dgx-a100");
    let device = rig.device(1);
    // SAFETY: a struct of numbers.
    let mut pci: nvmlPciInfo_t = unsafe { zeroed() };
    ok!(rig.lib.nvmlDeviceGetPciInfo_v3(device, &raw mut pci));
    assert_eq!(chars(&pci.busId), "00000000:0F:00.0");
    assert_eq!(chars(&pci.busIdLegacy), "0000:0F:00.0");
    assert_eq!((pci.domain, pci.bus, pci.device), (0, 0x0f, 0));
    assert_eq!(pci.pciDeviceId, 0x20b0_10de);
    assert_eq!(pci.pciSubSystemId, 0x134f_10de);
    let mut cpus = [0; 4];
    ok!(rig
        .lib
        .nvmlDeviceGetCpuAffinity(device, 4, cpus.as_mut_ptr()));
    assert_eq!(cpus, [0xffff << 48, 0, 0xffff << 48, 0]);
    let mut nodes = [0; 1];
    ok!(rig
        .lib
        .nvmlDeviceGetMemoryAffinity(device, 1, nodes.as_mut_ptr(), 0));
    assert_eq!(nodes, [1 << 3]);
}

#[test]
fn both_versions_of_memory_agree() {
    let rig = Rig::new("dgx-a100");
    let device = rig.device(0);
    rig.node
        .set_sensor(&target("0"), "memory-used", 1000)
        .unwrap();
    // SAFETY: structs of numbers.
    let (mut one, mut two): (nvmlMemory_t, nvmlMemory_v2_t) = unsafe { (zeroed(), zeroed()) };
    ok!(rig.lib.nvmlDeviceGetMemoryInfo(device, &raw mut one));
    assert_eq!(
        code!(rig.lib.nvmlDeviceGetMemoryInfo_v2(device, &raw mut two)),
        VERSION_MISMATCH
    );
    two.version = mark::<nvmlMemory_v2_t>(2);
    ok!(rig.lib.nvmlDeviceGetMemoryInfo_v2(device, &raw mut two));
    assert_eq!((one.total, two.total), (40960 << 20, 40960 << 20));
    assert_eq!(two.used, 1000 << 20);
    assert_eq!(two.used + two.free + two.reserved, two.total);
    assert_eq!((one.free, one.used), (two.free, two.used + two.reserved));
}

#[test]
fn sensors_follow_the_commands() {
    let rig = Rig::new("dgx-a100");
    let (device, lib, node) = (rig.device(2), &rig.lib, &rig.node);
    let set = |name: &str, value| node.set_sensor(&target("2"), name, value).unwrap();
    set("temperature", 81);
    set("power", 399_000);
    set("utilization", 97);
    set("memory-utilization", 55);
    set("clock-sm", 1410);
    set("clock-reasons", 0x40);
    set("performance-state", 3);
    set("pcie-generation", 1);
    set("pcie-width", 8);
    set("pcie-replays", 12);
    assert_eq!(rig.temperature(device), Ok(81));
    let mut newer = nvmlTemperature_v1_t {
        version: mark::<nvmlTemperature_v1_t>(1),
        sensorType: 0,
        temperature: 0,
    };
    ok!(lib.nvmlDeviceGetTemperatureV(device, &raw mut newer));
    assert_eq!(newer.temperature, 81);
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetPowerUsage(device, o))),
        Ok(399_000_u32)
    );
    // SAFETY: a struct of numbers.
    let mut rates: nvmlUtilization_t = unsafe { zeroed() };
    ok!(lib.nvmlDeviceGetUtilizationRates(device, &raw mut rates));
    assert_eq!((rates.gpu, rates.memory), (97, 55));
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetClockInfo(device, 1, o))),
        Ok(1410_u32)
    );
    let reasons = |o| code!(lib.nvmlDeviceGetCurrentClocksEventReasons(device, o));
    let older = |o| code!(lib.nvmlDeviceGetCurrentClocksThrottleReasons(device, o));
    assert_eq!(
        (number(reasons), number(older)),
        (Ok(0x40_u64), Ok(0x40_u64))
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetPerformanceState(device, o))),
        Ok(3_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetCurrPcieLinkGeneration(device, o))),
        Ok(1_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetCurrPcieLinkWidth(device, o))),
        Ok(8_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetPcieReplayCounter(device, o))),
        Ok(12_u32)
    );
    assert_eq!(rig.temperature(rig.device(3)), Ok(29));
}

#[test]
fn limits_and_modes_are_those_of_the_model() {
    let rig = Rig::new("dgx-a100");
    let (device, lib) = (rig.device(0), &rig.lib);
    let threshold =
        |kind| number(|o| code!(lib.nvmlDeviceGetTemperatureThreshold(device, kind, o)));
    assert_eq!(
        (threshold(0), threshold(1), threshold(3)),
        (Ok(95_u32), Ok(92), Ok(85))
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetPowerManagementLimit(device, o))),
        Ok(400_000_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetEnforcedPowerLimit(device, o))),
        Ok(400_000_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetMaxPcieLinkGeneration(device, o))),
        Ok(4_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetMaxPcieLinkWidth(device, o))),
        Ok(16_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetMaxClockInfo(device, 1, o))),
        Ok(1410_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetPersistenceMode(device, o))),
        Ok(1_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetDisplayMode(device, o))),
        Ok(0_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetDisplayActive(device, o))),
        Ok(0_u32)
    );
    let mut count: c_uint = 5;
    let none = std::ptr::null_mut();
    ok!(lib.nvmlDeviceGetComputeRunningProcesses_v3(device, &raw mut count, none));
    assert_eq!(count, 0);
}

#[test]
fn memory_errors_are_counted_and_repaired() {
    let rig = Rig::new("dgx-a100");
    let (device, lib) = (rig.device(0), &rig.lib);
    rig.node
        .count_ecc_error(&target("0"), EccKind::Uncorrected)
        .unwrap();
    rig.node
        .set_sensor(&target("0"), "ecc-corrected", 7)
        .unwrap();
    rig.node
        .set_sensor(&target("0"), "remap-pending", 1)
        .unwrap();
    let total = |kind| number(|o| code!(lib.nvmlDeviceGetTotalEccErrors(device, kind, 0, o)));
    assert_eq!((total(0), total(1)), (Ok(7_u64), Ok(1)));
    let at = |place| number(|o| code!(lib.nvmlDeviceGetMemoryErrorCounter(device, 1, 0, place, o)));
    assert_eq!((at(2), at(1)), (Ok(1_u64), Ok(0)));
    let (mut current, mut pending) = (0, 0);
    ok!(lib.nvmlDeviceGetEccMode(device, &raw mut current, &raw mut pending));
    assert_eq!((current, pending), (1, 1));
    let mut rows = [9; 4];
    let [a, b, c, d] = &mut rows;
    ok!(lib.nvmlDeviceGetRemappedRows(device, a, b, c, d));
    assert_eq!(rows, [0, 0, 1, 0]);
    let retired = |o| code!(lib.nvmlDeviceGetRetiredPagesPendingStatus(device, o));
    assert_eq!(number::<u32>(retired), Err(NOT_SUPPORTED));
}

#[test]
fn older_cards_retire_pages_instead() {
    let rig = Rig::new("dgx1-v100");
    let device = rig.device(0);
    rig.node
        .set_sensor(&target("0"), "retired-pending", 1)
        .unwrap();
    let retired = number(|o| code!(rig.lib.nvmlDeviceGetRetiredPagesPendingStatus(device, o)));
    assert_eq!(retired, Ok(1_u32));
}

#[test]
fn each_field_has_an_answer_of_its_own() {
    let rig = Rig::new("dgx-a100");
    // SAFETY: a struct of numbers.
    let mut fields: [nvmlFieldValue_t; 3] = unsafe { zeroed() };
    fields[0].fieldId = field_id::NVML_FI_DEV_MEMORY_TEMP;
    fields[1].fieldId = 9999;
    fields[2].fieldId = field_id::NVML_FI_DEV_NVLINK_LINK_COUNT;
    ok!(rig
        .lib
        .nvmlDeviceGetFieldValues(rig.device(0), 3, fields.as_mut_ptr()));
    // SAFETY: the library sets this member.
    let value = |index: usize| unsafe { fields[index].value.ullVal };
    assert_eq!((fields[0].nvmlReturn, value(0)), (SUCCESS, 28));
    assert_eq!(fields[1].nvmlReturn, NOT_SUPPORTED);
    assert_eq!((fields[2].nvmlReturn, value(2)), (SUCCESS, 12));
}
