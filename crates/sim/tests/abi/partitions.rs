//! Tests of MIG devices: facts, calls, creation and removal.

use std::mem::zeroed;

use nvml_wrapper_sys::bindings::*;

use crate::rig::*;

#[test]
fn mig_mode_is_told_for_each_card() {
    let rig = Rig::new("a100-mig");
    let mode = |index| {
        let (mut current, mut pending) = (9, 9);
        ok!(rig
            .lib
            .nvmlDeviceGetMigMode(rig.device(index), &raw mut current, &raw mut pending));
        (current, pending)
    };
    assert_eq!((mode(0), mode(6), mode(7)), ((1, 1), (1, 1), (0, 0)));
    let (device, mut mig) = (rig.device(6), std::ptr::null_mut());
    let none = code!(
        rig.lib
            .nvmlDeviceGetMigDeviceHandleByIndex(device, 0, &raw mut mig)
    );
    assert_eq!(none, NOT_FOUND);
    let most = number(|o| code!(rig.lib.nvmlDeviceGetMaxMigDeviceCount(device, o)));
    assert_eq!(most, Ok(7_u32));
}

#[test]
fn a_card_without_mig_says_so() {
    let rig = Rig::new("t4");
    let device = rig.device(0);
    let (mut current, mut pending) = (0, 0);
    let mode = code!(
        rig.lib
            .nvmlDeviceGetMigMode(device, &raw mut current, &raw mut pending)
    );
    assert_eq!(mode, NOT_SUPPORTED);
    let most = number(|o| code!(rig.lib.nvmlDeviceGetMaxMigDeviceCount(device, o)));
    assert_eq!(most, Ok(0_u32));
}

#[test]
fn a_mig_device_says_what_it_is() {
    let rig = Rig::new("a100-mig");
    let (lib, mig) = (&rig.lib, rig.mig(0, 6));
    let facts = rig
        .node
        .list_migs()
        .unwrap()
        .into_iter()
        .find(|mig| mig.index == "0:6")
        .unwrap();
    assert_eq!(rig.uuid(mig), facts.uuid);
    assert_eq!(rig.by_uuid(&facts.uuid), (SUCCESS, mig));
    let name = text(|b, n| code!(lib.nvmlDeviceGetName(mig, b, n))).unwrap();
    assert_eq!(name, "NVIDIA A100-SXM4-40GB MIG 1g.5gb");
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceIsMigDeviceHandle(mig, o))),
        Ok(1_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceIsMigDeviceHandle(rig.device(0), o))),
        Ok(0_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetGpuInstanceId(mig, o))),
        Ok(13_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetComputeInstanceId(mig, o))),
        Ok(0_u32)
    );
    let mut parent = std::ptr::null_mut();
    ok!(lib.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig, &raw mut parent));
    assert_eq!(parent, rig.device(0));
    // SAFETY: structs of numbers.
    let mut memory: nvmlMemory_t = unsafe { zeroed() };
    ok!(lib.nvmlDeviceGetMemoryInfo(mig, &raw mut memory));
    assert_eq!(memory.total, 4864 << 20);
    assert_eq!(rig.temperature(mig), Err(NOT_SUPPORTED));
}

/// Node whose seventh card has a GPU instance with two compute instances.
fn shared() -> Rig {
    let rig = Rig::new("a100-mig");
    for profile in ["4g.20gb", "1c.3g.20gb", "2c.3g.20gb"] {
        rig.node.add_mig(&target("6"), profile).unwrap();
    }
    rig
}

#[test]
fn attributes_give_the_slices() {
    let rig = shared();
    let attributes = |gpu, index| {
        // SAFETY: a struct of numbers.
        let mut found: nvmlDeviceAttributes_t = unsafe { zeroed() };
        ok!(rig
            .lib
            .nvmlDeviceGetAttributes_v2(rig.mig(gpu, index), &raw mut found));
        (
            found.gpuInstanceSliceCount,
            found.computeInstanceSliceCount,
            found.memorySizeMB,
        )
    };
    assert_eq!(attributes(1, 0), (3, 3, 20096));
    assert_eq!(attributes(6, 1), (3, 1, 20096));
    assert_eq!(attributes(6, 2), (3, 2, 20096));
    // SAFETY: a struct of numbers.
    let mut found: nvmlDeviceAttributes_t = unsafe { zeroed() };
    let card = code!(
        rig.lib
            .nvmlDeviceGetAttributes_v2(rig.device(0), &raw mut found)
    );
    assert_eq!(card, NOT_SUPPORTED);
}

#[test]
fn shapes_are_offered_in_each_version() {
    let rig = Rig::new("a100-mig");
    let (lib, device) = (&rig.lib, rig.device(0));
    // SAFETY: structs of numbers.
    let (mut one, mut two): (
        nvmlGpuInstanceProfileInfo_t,
        nvmlGpuInstanceProfileInfo_v2_t,
    ) = unsafe { (zeroed(), zeroed()) };
    ok!(lib.nvmlDeviceGetGpuInstanceProfileInfo(device, 0, &raw mut one));
    assert_eq!(
        (one.id, one.sliceCount, one.instanceCount, one.memorySizeMB),
        (19, 1, 7, 4864)
    );
    let unmarked = code!(lib.nvmlDeviceGetGpuInstanceProfileInfoV(device, 0, &raw mut two));
    assert_eq!(unmarked, VERSION_MISMATCH);
    two.version = mark::<nvmlGpuInstanceProfileInfo_v2_t>(2);
    ok!(lib.nvmlDeviceGetGpuInstanceProfileInfoV(device, 2, &raw mut two));
    assert_eq!((chars(&two.name), two.id), ("MIG 3g.20gb".to_owned(), 9));
    // SAFETY: a struct of numbers.
    let mut three: nvmlGpuInstanceProfileInfo_v3_t = unsafe { zeroed() };
    three.version = mark::<nvmlGpuInstanceProfileInfo_v3_t>(3);
    ok!(lib.nvmlDeviceGetGpuInstanceProfileInfoV(device, 7, (&raw mut three).cast()));
    assert_eq!(chars(&three.name), "MIG 1g.5gb+me");
    let eight = code!(lib.nvmlDeviceGetGpuInstanceProfileInfo(device, 5, &raw mut one));
    assert_eq!(eight, NOT_SUPPORTED);
    let beyond = code!(lib.nvmlDeviceGetGpuInstanceProfileInfo(device, 99, &raw mut one));
    assert_eq!(beyond, INVALID_ARGUMENT);
}

#[test]
fn instances_lead_from_the_card_to_the_compute_instance() {
    let rig = shared();
    let (lib, device) = (&rig.lib, rig.device(6));
    let (mut list, mut count) = ([std::ptr::null_mut(); 7], 0);
    ok!(lib.nvmlDeviceGetGpuInstances(device, 9, list.as_mut_ptr(), &raw mut count));
    assert_eq!(count, 1);
    // SAFETY: structs of numbers and pointers.
    let (mut gi, mut ci): (nvmlGpuInstanceInfo_t, nvmlComputeInstanceInfo_t) =
        unsafe { (zeroed(), zeroed()) };
    ok!(lib.nvmlGpuInstanceGetInfo(list[0], &raw mut gi));
    assert_eq!(
        (gi.device, gi.id, gi.profileId, gi.placement.start),
        (device, 2, 9, 4)
    );
    let mut by_id = std::ptr::null_mut();
    ok!(lib.nvmlDeviceGetGpuInstanceById(device, 2, &raw mut by_id));
    assert_eq!(by_id, list[0]);
    let (mut compute, mut count) = ([std::ptr::null_mut(); 7], 0);
    ok!(lib.nvmlGpuInstanceGetComputeInstances(by_id, 1, compute.as_mut_ptr(), &raw mut count));
    assert_eq!(count, 1);
    ok!(lib.nvmlComputeInstanceGetInfo_v2(compute[0], &raw mut ci));
    assert_eq!(
        (ci.device, ci.gpuInstance, ci.id, ci.profileId),
        (device, by_id, 1, 1)
    );
    // SAFETY: a struct of numbers.
    let mut info: nvmlComputeInstanceProfileInfo_t = unsafe { zeroed() };
    ok!(lib.nvmlGpuInstanceGetComputeInstanceProfileInfo(by_id, 0, 0, &raw mut info));
    assert_eq!(
        (
            info.sliceCount,
            info.instanceCount,
            info.multiprocessorCount
        ),
        (1, 3, 14)
    );
    let missing = code!(lib.nvmlDeviceGetGpuInstanceById(device, 14, &raw mut by_id));
    assert_eq!(missing, NOT_FOUND);
}

#[test]
fn mig_devices_come_and_go_while_the_library_is_used() {
    let rig = Rig::new("a100-mig");
    let uuid = rig.node.add_mig(&target("6"), "3g.20gb").unwrap().remove(0);
    let mig = rig.mig(6, 0);
    assert_eq!(rig.uuid(mig), uuid);
    let nodes = |n: u32| {
        rig.node
            .host_root()
            .join(format!("dev/nvidia-caps/nvidia-cap{n}"))
            .exists()
    };
    // Instance 2 of the seventh card: 3 + (6 * 15 + 2) * 9.
    assert!(nodes(831) && nodes(832));
    rig.node.remove_mig(&target("6:0")).unwrap();
    assert!(!nodes(831) && !nodes(832));
    let gone = text(|b, n| code!(rig.lib.nvmlDeviceGetUUID(mig, b, n)));
    assert_eq!(gone, Err(INVALID_ARGUMENT));
    assert_eq!(rig.by_uuid(&uuid).0, NOT_FOUND);
    rig.node.add_mig(&target("6"), "3g.20gb").unwrap();
    assert_eq!(rig.uuid(mig), uuid);
}

#[test]
fn a_refused_partition_changes_nothing() {
    let rig = Rig::new("a100-mig");
    let before = rig.node.node_state().unwrap();
    for (card, profile, reason) in [
        ("0", "1g.5gb", "no room"),
        ("6", "9g.99gb", "7g.40gb"),
        ("7", "1g.5gb", "MIG mode is off"),
        ("0:0", "1g.5gb", "MIG device"),
    ] {
        let error = rig
            .node
            .add_mig(&target(card), profile)
            .unwrap_err()
            .to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(rig.node.node_state().unwrap(), before);
}

#[test]
fn room_is_counted_as_partitions_are_made() {
    let rig = Rig::new("a100-mig");
    let device = rig.device(6);
    let room = |id| {
        let lib = &rig.lib;
        number(|o| code!(lib.nvmlDeviceGetGpuInstanceRemainingCapacity(device, id, o)))
    };
    assert_eq!(
        (room(19), room(14), room(9), room(0)),
        (Ok(7_u32), Ok(3), Ok(2), Ok(1))
    );
    rig.node.add_mig(&target("6"), "3g.20gb").unwrap();
    assert_eq!(
        (room(19), room(14), room(9), room(0)),
        (Ok(4_u32), Ok(2), Ok(1), Ok(0))
    );
    let (mut places, mut count) = ([nvmlGpuInstancePlacement_t { start: 9, size: 9 }; 8], 0);
    ok!(rig.lib.nvmlDeviceGetGpuInstancePossiblePlacements_v2(
        device,
        14,
        places.as_mut_ptr(),
        &raw mut count
    ));
    let starts: Vec<_> = places.iter().take(3).map(|p| (p.start, p.size)).collect();
    assert_eq!((count, starts), (3, vec![(0, 2), (2, 2), (4, 2)]));
}

#[test]
fn placements_are_told_in_either_mode_and_counted_without_a_list() {
    let rig = Rig::new("a100-mig");
    let lib = &rig.lib;
    let counted = |card, id| {
        let device = rig.device(card);
        number(|o| {
            let none = std::ptr::null_mut();
            code!(lib.nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, none, o))
        })
    };
    // MIG mode is on for card 0 and off for card 7.
    for card in [0, 7] {
        assert_eq!(
            (counted(card, 19), counted(card, 9), counted(card, 0)),
            (Ok(7_u32), Ok(2), Ok(1))
        );
        assert_eq!(counted(card, 99), Err(NOT_SUPPORTED), "no such profile");
    }
}

#[test]
fn compute_shapes_are_named_in_each_version() {
    let rig = Rig::new("a100-mig");
    let mut gi = std::ptr::null_mut();
    ok!(rig
        .lib
        .nvmlDeviceGetGpuInstanceById(rig.device(5), 2, &raw mut gi));
    // SAFETY: structs of numbers.
    let (mut two, mut three): (
        nvmlComputeInstanceProfileInfo_v2_t,
        nvmlComputeInstanceProfileInfo_v3_t,
    ) = unsafe { (zeroed(), zeroed()) };
    two.version = mark::<nvmlComputeInstanceProfileInfo_v2_t>(2);
    ok!(rig
        .lib
        .nvmlGpuInstanceGetComputeInstanceProfileInfoV(gi, 1, 0, &raw mut two));
    assert_eq!(chars(&two.name), "MIG 2c.3g.20gb");
    three.version = mark::<nvmlComputeInstanceProfileInfo_v3_t>(3);
    let place = (&raw mut three).cast();
    ok!(rig
        .lib
        .nvmlGpuInstanceGetComputeInstanceProfileInfoV(gi, 2, 0, place));
    assert_eq!(chars(&three.name), "MIG 3g.20gb");
    let wide = code!(
        rig.lib
            .nvmlGpuInstanceGetComputeInstanceProfileInfoV(gi, 4, 0, place)
    );
    assert_eq!(wide, NOT_SUPPORTED);
}
