//! Tests of settings, MIG changes by programs, processes and engines.

use std::{ffi::c_uint, mem::zeroed};

use nvml_wrapper_sys::bindings::*;
use sim::state::{GpuProcess, ProcessWork};

use crate::rig::*;

const NO_ROOM: u32 = 23;
const IN_USE: u32 = 19;

#[test]
fn what_is_set_is_seen_by_all() {
    let rig = Rig::new("dgx-a100");
    let (device, lib) = (rig.device(0), &rig.lib);
    ok!(lib.nvmlDeviceSetPersistenceMode(device, 0));
    ok!(lib.nvmlDeviceSetComputeMode(device, 3));
    ok!(lib.nvmlDeviceSetEccMode(device, 0));
    ok!(lib.nvmlDeviceSetPowerManagementLimit(device, 250_000));
    ok!(lib.nvmlDeviceSetApplicationsClocks(device, 1215, 1410));
    let get = |call: &dyn Fn(*mut c_uint) -> u32| number(call);
    assert_eq!(
        get(&|o| code!(lib.nvmlDeviceGetPersistenceMode(device, o))),
        Ok(0)
    );
    assert_eq!(
        get(&|o| code!(lib.nvmlDeviceGetComputeMode(device, o))),
        Ok(3)
    );
    let limit = |o| code!(lib.nvmlDeviceGetEnforcedPowerLimit(device, o));
    assert_eq!(number(limit), Ok(250_000_u32));
    let (mut current, mut pending) = (9, 9);
    ok!(lib.nvmlDeviceGetEccMode(device, &raw mut current, &raw mut pending));
    assert_eq!((current, pending), (1, 0));
    // The setting is in the node's file, so all processes have it.
    let settings = rig.node.node_state().unwrap().gpus[0].settings.clone();
    assert_eq!(settings.power_limit, Some(250_000));
    assert_eq!(settings.application_clocks, Some((1215, 1410)));
    assert_eq!(
        get(&|o| code!(lib.nvmlDeviceGetComputeMode(rig.device(1), o))),
        Ok(0)
    );
}

#[test]
fn what_cannot_be_set_is_refused() {
    let rig = Rig::new("a100-mig");
    let (card, mig, lib) = (rig.device(7), rig.mig(0, 0), &rig.lib);
    assert_eq!(
        code!(lib.nvmlDeviceSetPersistenceMode(card, 2)),
        INVALID_ARGUMENT
    );
    assert_eq!(
        code!(lib.nvmlDeviceSetPersistenceMode(mig, 1)),
        NOT_SUPPORTED
    );
    assert_eq!(code!(lib.nvmlDeviceSetComputeMode(card, 1)), NOT_SUPPORTED);
    assert_eq!(
        code!(lib.nvmlDeviceSetComputeMode(card, 4)),
        INVALID_ARGUMENT
    );
    let limit = code!(lib.nvmlDeviceSetPowerManagementLimit(card, 1_000_000));
    assert_eq!(limit, INVALID_ARGUMENT);
    let clocks = code!(lib.nvmlDeviceSetApplicationsClocks(card, 1215, 1411));
    assert_eq!(clocks, INVALID_ARGUMENT);
}

#[test]
fn partitions_made_through_the_library_are_those_of_the_command() {
    let rig = Rig::new("a100-mig");
    let (card, lib) = (rig.device(6), &rig.lib);
    // Created by the command and removed; then created in the same way by a program.
    let wanted = rig.node.add_mig(&target("6"), "3g.20gb").unwrap().remove(0);
    rig.node.remove_mig(&target("6:0")).unwrap();
    let (mut gi, mut ci) = (std::ptr::null_mut(), std::ptr::null_mut());
    ok!(lib.nvmlDeviceCreateGpuInstance(card, 9, &raw mut gi));
    assert!(
        rig.node
            .list_migs()
            .unwrap()
            .iter()
            .all(|mig| mig.gpu != rig.uuid(card))
    );
    let right = |n: u32| {
        rig.node
            .host_root()
            .join(format!("dev/nvidia-caps/nvidia-cap{n}"))
    };
    assert!(right(831).exists() && !right(832).exists());
    ok!(lib.nvmlGpuInstanceCreateComputeInstance(gi, 2, &raw mut ci));
    assert!(right(831).exists() && right(832).exists());
    assert_eq!(rig.uuid(rig.mig(6, 0)), wanted);
    // Instances in use cannot be destroyed; then destruction from the inside out.
    assert_eq!(code!(lib.nvmlGpuInstanceDestroy(gi)), IN_USE);
    ok!(lib.nvmlComputeInstanceDestroy(ci));
    assert_eq!(rig.by_uuid(&wanted).0, NOT_FOUND);
    assert_eq!(code!(lib.nvmlComputeInstanceDestroy(ci)), INVALID_ARGUMENT);
    ok!(lib.nvmlGpuInstanceDestroy(gi));
    assert_eq!(code!(lib.nvmlGpuInstanceDestroy(gi)), INVALID_ARGUMENT);
    assert!(!right(831).exists());
}

#[test]
fn partitions_are_made_where_they_are_wanted_and_fit() {
    let rig = Rig::new("a100-mig");
    let (card, lib) = (rig.device(6), &rig.lib);
    let mut gi = std::ptr::null_mut();
    let mut place = nvmlGpuInstancePlacement_t { start: 2, size: 2 };
    let make = |id, place: &nvmlGpuInstancePlacement_t, gi| {
        code!(lib.nvmlDeviceCreateGpuInstanceWithPlacement(card, id, place, gi))
    };
    assert_eq!(make(14, &place, &raw mut gi), SUCCESS);
    // SAFETY: a struct of numbers and a pointer.
    let mut info: nvmlGpuInstanceInfo_t = unsafe { zeroed() };
    ok!(lib.nvmlGpuInstanceGetInfo(gi, &raw mut info));
    assert_eq!(
        (info.profileId, info.placement.start, info.placement.size),
        (14, 2, 2)
    );
    assert_eq!(make(14, &place, &raw mut gi), NO_ROOM);
    place.start = 3;
    assert_eq!(make(14, &place, &raw mut gi), INVALID_ARGUMENT);
    assert_eq!(
        code!(lib.nvmlDeviceCreateGpuInstance(card, 0, &raw mut gi)),
        NO_ROOM
    );
    assert_eq!(
        code!(lib.nvmlDeviceCreateGpuInstance(card, 77, &raw mut gi)),
        INVALID_ARGUMENT
    );
    let off = rig.device(7);
    assert_eq!(
        code!(lib.nvmlDeviceCreateGpuInstance(off, 19, &raw mut gi)),
        NOT_SUPPORTED
    );
}

#[test]
fn a_gpu_instance_is_shared_by_compute_instances() {
    let rig = Rig::new("a100-mig");
    let (card, lib) = (rig.device(6), &rig.lib);
    let (mut gi, mut ci) = (std::ptr::null_mut(), std::ptr::null_mut());
    ok!(lib.nvmlDeviceCreateGpuInstance(card, 9, &raw mut gi));
    let room = |profile| {
        number(|o| code!(lib.nvmlGpuInstanceGetComputeInstanceRemainingCapacity(gi, profile, o)))
    };
    assert_eq!((room(0), room(1), room(2)), (Ok(3_u32), Ok(1), Ok(1)));
    ok!(lib.nvmlGpuInstanceCreateComputeInstance(gi, 0, &raw mut ci));
    ok!(lib.nvmlGpuInstanceCreateComputeInstance(gi, 1, &raw mut ci));
    assert_eq!(room(0), Ok(0));
    let full = code!(lib.nvmlGpuInstanceCreateComputeInstance(gi, 0, &raw mut ci));
    assert_eq!(full, NO_ROOM);
    let wide = code!(lib.nvmlGpuInstanceCreateComputeInstance(gi, 4, &raw mut ci));
    assert_eq!(wide, NOT_SUPPORTED);
    // SAFETY: a struct of numbers and pointers.
    let mut info: nvmlComputeInstanceInfo_t = unsafe { zeroed() };
    ok!(lib.nvmlComputeInstanceGetInfo_v2(ci, &raw mut info));
    assert_eq!(
        (info.id, info.placement.start, info.placement.size),
        (1, 1, 2)
    );
    let profiles = rig.node.list_migs().unwrap().into_iter();
    let profiles = profiles
        .filter(|mig| mig.gpu == rig.uuid(card))
        .map(|mig| mig.profile);
    assert_eq!(profiles.collect::<Vec<_>>(), ["1c.3g.20gb", "2c.3g.20gb"]);
}

#[test]
fn mig_mode_is_switched_when_nothing_is_in_the_way() {
    let rig = Rig::new("a100-mig");
    let lib = &rig.lib;
    let mut status = 99;
    assert_eq!(
        code!(lib.nvmlDeviceSetMigMode(rig.device(0), 0, &raw mut status)),
        IN_USE
    );
    ok!(lib.nvmlDeviceSetMigMode(rig.device(7), 1, &raw mut status));
    assert_eq!(
        (status, rig.node.list_gpus().unwrap()[7].mig_enabled),
        (SUCCESS, true)
    );
    let (mut current, mut pending) = (9, 9);
    ok!(lib.nvmlDeviceGetMigMode(rig.device(7), &raw mut current, &raw mut pending));
    assert_eq!((current, pending), (1, 1));
}

/// Two processes of a card: one on the whole card or the first MIG device, and one that draws.
fn processes(instance: Option<(u32, u32)>) -> [GpuProcess; 2] {
    let (pid, memory_mib) = (std::process::id(), 512);
    let compute = GpuProcess {
        pid,
        work: ProcessWork::Compute,
        memory_mib,
        instance,
    };
    let graphics = GpuProcess {
        pid: 2,
        work: ProcessWork::Graphics,
        memory_mib: 1,
        instance: None,
    };
    [compute, graphics]
}

#[test]
fn lists_of_processes_say_how_much_room_they_need() {
    let rig = Rig::new("dgx-a100");
    let (device, lib) = (rig.device(0), &rig.lib);
    rig.node
        .set_processes(&target("0"), &processes(None))
        .unwrap();
    let (mut count, none) = (0, std::ptr::null_mut());
    let small = code!(lib.nvmlDeviceGetComputeRunningProcesses_v3(device, &raw mut count, none));
    assert_eq!((small, count), (INSUFFICIENT_SIZE, 1));
    // SAFETY: structs of numbers.
    let mut found: [nvmlProcessInfo_t; 3] = unsafe { zeroed() };
    count = 3;
    let list = found.as_mut_ptr();
    ok!(lib.nvmlDeviceGetComputeRunningProcesses_v3(device, &raw mut count, list));
    assert_eq!((count, found[0].pid), (1, std::process::id()));
    assert_eq!(
        (found[0].usedGpuMemory, found[0].gpuInstanceId),
        (512 << 20, u32::MAX)
    );
    ok!(lib.nvmlDeviceGetMPSComputeRunningProcesses_v3(device, &raw mut count, none));
    assert_eq!(count, 0);
    let name = text(|b, n| code!(lib.nvmlSystemGetProcessName(std::process::id(), b, n)));
    assert!(name.unwrap().starts_with('/'));
}

#[test]
fn a_mig_device_shows_its_own_processes_and_is_not_destroyed_with_one() {
    let rig = Rig::new("a100-mig");
    let lib = &rig.lib;
    let mig = rig.node.list_migs().unwrap().remove(0);
    let ids = (mig.gpu_instance, mig.compute_instance);
    rig.node
        .set_processes(&target("0"), &processes(Some(ids)))
        .unwrap();
    let count = |device| {
        // SAFETY: structs of numbers.
        let (mut count, mut found): (_, [nvmlProcessInfo_t; 3]) = (3, unsafe { zeroed() });
        let list = found.as_mut_ptr();
        ok!(lib.nvmlDeviceGetComputeRunningProcesses_v3(device, &raw mut count, list));
        count
    };
    assert_eq!(
        (
            count(rig.mig(0, 0)),
            count(rig.mig(0, 1)),
            count(rig.device(0))
        ),
        (1, 0, 1)
    );
    let (mut gi, mut ci) = (std::ptr::null_mut(), std::ptr::null_mut());
    ok!(lib.nvmlDeviceGetGpuInstanceById(rig.device(0), ids.0, &raw mut gi));
    ok!(lib.nvmlGpuInstanceGetComputeInstanceById(gi, ids.1, &raw mut ci));
    assert_eq!(code!(lib.nvmlComputeInstanceDestroy(ci)), IN_USE);
}

#[test]
fn accounts_are_kept_when_asked_for() {
    let rig = Rig::new("dgx-a100");
    let (device, lib) = (rig.device(0), &rig.lib);
    rig.node
        .set_processes(&target("0"), &processes(None))
        .unwrap();
    let (mut count, mut pids) = (4, [0; 4]);
    let off = code!(lib.nvmlDeviceGetAccountingPids(device, &raw mut count, pids.as_mut_ptr()));
    assert_eq!(off, NOT_SUPPORTED);
    ok!(lib.nvmlDeviceSetAccountingMode(device, 1));
    ok!(lib.nvmlDeviceGetAccountingPids(device, &raw mut count, pids.as_mut_ptr()));
    assert_eq!((count, pids[0]), (1, std::process::id()));
    // SAFETY: a struct of numbers.
    let mut stats: nvmlAccountingStats_t = unsafe { zeroed() };
    ok!(lib.nvmlDeviceGetAccountingStats(device, pids[0], &raw mut stats));
    assert_eq!((stats.isRunning, stats.maxMemoryUsage), (1, 512 << 20));
    let none = code!(lib.nvmlDeviceGetAccountingStats(device, 1, &raw mut stats));
    assert_eq!(none, NOT_FOUND);
}

#[test]
fn clocks_are_listed_from_the_highest_down() {
    let rig = Rig::new("dgx-a100");
    let (device, lib) = (rig.device(0), &rig.lib);
    let (mut count, mut clocks) = (0, [0; 128]);
    let list = clocks.as_mut_ptr();
    let small = code!(lib.nvmlDeviceGetSupportedMemoryClocks(device, &raw mut count, list));
    assert_eq!((small, count), (INSUFFICIENT_SIZE, 1));
    ok!(lib.nvmlDeviceGetSupportedMemoryClocks(device, &raw mut count, list));
    let memory = clocks[0];
    count = 128;
    let list = clocks.as_mut_ptr();
    ok!(lib.nvmlDeviceGetSupportedGraphicsClocks(device, memory, &raw mut count, list));
    assert_eq!(
        (memory, count, clocks[0], clocks[80]),
        (1215, 81, 1410, 210)
    );
    let unknown = code!(lib.nvmlDeviceGetSupportedGraphicsClocks(device, 1, &raw mut count, list));
    assert_eq!(unknown, NOT_FOUND);
}

#[test]
fn samples_are_of_what_is_measured() {
    let rig = Rig::new("dgx-a100");
    let (device, lib) = (rig.device(0), &rig.lib);
    rig.node
        .set_sensor(&target("0"), "utilization", 77)
        .unwrap();
    // SAFETY: a struct of numbers.
    let (mut kind, mut count, mut sample): (_, _, nvmlSample_t) = (9, 0, unsafe { zeroed() });
    let mut get = |since, samples: *mut nvmlSample_t| {
        let (kind, count) = (&raw mut kind, &raw mut count);
        code!(lib.nvmlDeviceGetSamples(device, 1, since, kind, count, samples))
    };
    assert_eq!(get(0, std::ptr::null_mut()), SUCCESS);
    assert_eq!(get(0, &raw mut sample), SUCCESS);
    assert_eq!(get(u64::MAX, &raw mut sample), NOT_FOUND);
    assert_eq!((kind, count), (1, 1));
    // SAFETY: the library sets this member.
    assert_eq!(unsafe { sample.sampleValue.uiVal }, 77);
}

#[test]
fn cards_near_a_processor_are_found() {
    let rig = Rig::new("dgx-a100");
    let lib = &rig.lib;
    let (mut count, mut found) = (0, [std::ptr::null_mut(); 8]);
    ok!(lib.nvmlSystemGetTopologyGpuSet(48, &raw mut count, std::ptr::null_mut()));
    assert_eq!(count, 2);
    ok!(lib.nvmlSystemGetTopologyGpuSet(48, &raw mut count, found.as_mut_ptr()));
    assert_eq!(found[..2], [rig.device(0), rig.device(1)]);
}

#[test]
fn a_uuid_is_understood_as_text_and_as_bytes() {
    let rig = Rig::new("dgx-a100");
    let wanted = rig.device(3);
    let uuid = rig.uuid(wanted);
    // SAFETY: a struct of numbers.
    let mut asked: nvmlUUID_v1_t = unsafe { zeroed() };
    asked.version = mark::<nvmlUUID_v1_t>(1);
    let mut find = |kind, value| {
        (asked.type_, asked.value) = (kind, value);
        let mut found = std::ptr::null_mut();
        let code = code!(
            rig.lib
                .nvmlDeviceGetHandleByUUIDV(&raw const asked, &raw mut found)
        );
        (code, found)
    };
    let mut str_ = [0; 41];
    for (to, from) in str_.iter_mut().zip(uuid.bytes()) {
        *to = i8::from_ne_bytes([from]);
    }
    assert_eq!(find(1, nvmlUUIDValue_t { str_ }), (SUCCESS, wanted));
    let hex: String = uuid.trim_start_matches("GPU-").replace('-', "");
    let byte = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
    let bytes = std::array::from_fn(byte);
    assert_eq!(find(2, nvmlUUIDValue_t { bytes }), (SUCCESS, wanted));
    assert_eq!(find(2, nvmlUUIDValue_t { bytes: [0; 16] }).0, NOT_FOUND);
    assert_eq!(find(7, nvmlUUIDValue_t { bytes }).0, INVALID_ARGUMENT);
}

#[test]
fn a_card_says_what_must_be_done_to_recover_it() {
    let rig = Rig::new("dgx-a100");
    let action = || {
        // SAFETY: a struct of numbers.
        let mut field: nvmlFieldValue_t = unsafe { zeroed() };
        field.fieldId = field_id::NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
        ok!(rig
            .lib
            .nvmlDeviceGetFieldValues(rig.device(0), 1, &raw mut field));
        // SAFETY: the library sets this member.
        (field.nvmlReturn, unsafe { field.value.uiVal })
    };
    assert_eq!(action(), (SUCCESS, 0));
    rig.node
        .set_sensor(&target("0"), "remap-pending", 1)
        .unwrap();
    assert_eq!(action(), (SUCCESS, 4));
    rig.node
        .set_sensor(&target("0"), "recovery-action", 2)
        .unwrap();
    assert_eq!(action(), (SUCCESS, 2));
}
