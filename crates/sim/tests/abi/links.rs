//! Topology, NVLinks and fabrics.

use std::{collections::BTreeMap, mem::zeroed};

use nvml_wrapper_sys::bindings::*;
use sim::NodeProfile;

use crate::rig::*;

#[test]
fn the_mesh_of_a_dgx1_is_seen_from_both_ends() {
    let rig = Rig::new("dgx1-v100");
    let gpus = rig.node.list_gpus().unwrap();
    let mut pairs = BTreeMap::new();
    for gpu in &gpus {
        let device = rig.device(u32::try_from(gpu.index).unwrap());
        for link in 0..18 {
            let mut active = 0;
            if code!(
                rig.lib
                    .nvmlDeviceGetNvLinkState(device, link, &raw mut active)
            ) != SUCCESS
            {
                continue;
            }
            // SAFETY: a struct of numbers.
            let mut pci: nvmlPciInfo_t = unsafe { zeroed() };
            ok!(rig
                .lib
                .nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &raw mut pci));
            let remote = chars(&pci.busId).parse().unwrap();
            let peer = gpus.iter().find(|gpu| gpu.pci == remote).unwrap().index;
            *pairs.entry((gpu.index, peer)).or_insert(0) += 1;
        }
    }
    assert_eq!(pairs.get(&(0, 3)), Some(&2));
    assert_eq!(pairs.get(&(2, 6)), Some(&1));
    assert_eq!(pairs.get(&(0, 5)), None);
    assert!(
        pairs
            .iter()
            .all(|((a, b), count)| pairs.get(&(*b, *a)) == Some(count))
    );
}

#[test]
fn switched_cards_have_the_switch_at_the_other_end() {
    let rig = Rig::new("dgx-a100");
    let (device, lib) = (rig.device(0), &rig.lib);
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetNvLinkRemoteDeviceType(device, 11, o))),
        Ok(2_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetNvLinkVersion(device, 0, o))),
        Ok(4_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetNvLinkCapability(device, 0, 0, o))),
        Ok(1_u32)
    );
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetNvLinkState(device, 11, o))),
        Ok(1_u32)
    );
    assert_eq!(
        number::<u32>(|o| code!(lib.nvmlDeviceGetNvLinkState(device, 12, o))),
        Err(INVALID_ARGUMENT)
    );
    rig.node.set_link(&target("0"), 11, false).unwrap();
    assert_eq!(
        number(|o| code!(lib.nvmlDeviceGetNvLinkState(device, 11, o))),
        Ok(0_u32)
    );
}

#[test]
fn a_card_without_nvlink_supports_none() {
    let rig = Rig::new("t4");
    let device = rig.device(0);
    let state = number::<u32>(|o| code!(rig.lib.nvmlDeviceGetNvLinkState(device, 0, o)));
    assert_eq!(state, Err(NOT_SUPPORTED));
}

#[test]
fn distance_and_peer_access_follow_the_machine() {
    let rig = Rig::new("dgx1-v100");
    let (lib, zero) = (&rig.lib, rig.device(0));
    let level = |peer| {
        let peer = rig.device(peer);
        number(|o| code!(lib.nvmlDeviceGetTopologyCommonAncestor(zero, peer, o)))
    };
    assert_eq!(
        (level(0), level(1), level(2), level(4)),
        (Ok(0_u32), Ok(10), Ok(30), Ok(50))
    );
    let p2p = |peer, what| {
        let peer = rig.device(peer);
        number(|o| code!(lib.nvmlDeviceGetP2PStatus(zero, peer, what, o)))
    };
    assert_eq!((p2p(4, 2), p2p(5, 2)), (Ok(0_u32), Ok(5)));
    let gone = rig.device(1);
    rig.node.lose_cards(&target("1")).unwrap();
    let lost = number::<u32>(|o| code!(lib.nvmlDeviceGetTopologyCommonAncestor(zero, gone, o)));
    assert_eq!(lost, Err(GPU_IS_LOST));
}

#[test]
fn older_fabrics_have_no_identity() {
    let rig = Rig::new("dgx-a100");
    // SAFETY: a struct of numbers.
    let mut info: nvmlGpuFabricInfo_v3_t = unsafe { zeroed() };
    let device = rig.device(0);
    let unmarked = code!(rig.lib.nvmlDeviceGetGpuFabricInfoV(device, &raw mut info));
    assert_eq!(unmarked, VERSION_MISMATCH);
    info.version = mark::<nvmlGpuFabricInfo_v3_t>(3);
    let code = code!(rig.lib.nvmlDeviceGetGpuFabricInfoV(device, &raw mut info));
    assert_eq!(code, NOT_SUPPORTED);
}

#[test]
fn newer_fabrics_are_complete_in_each_version() {
    let mut profile = NodeProfile::find_profile("dgx-a100").unwrap();
    profile.model = Some("h100-sxm5-80gb".to_owned());
    profile.nvswitches.truncate(4);
    let rig = Rig::with(&profile);
    ok!(rig.lib.nvmlInit_v2());
    let (lib, device) = (&rig.lib, rig.device(0));
    // SAFETY: structs of numbers.
    let (mut two, mut three): (nvmlGpuFabricInfo_v2_t, nvmlGpuFabricInfo_v3_t) =
        unsafe { (zeroed(), zeroed()) };
    two.version = mark::<nvmlGpuFabricInfo_v2_t>(2);
    ok!(lib.nvmlDeviceGetGpuFabricInfoV(device, (&raw mut two).cast()));
    assert_eq!(u32::from(two.state), NVML_GPU_FABRIC_STATE_COMPLETED);
    three.version = mark::<nvmlGpuFabricInfo_v3_t>(3);
    ok!(lib.nvmlDeviceGetGpuFabricInfoV(device, &raw mut three));
    assert_eq!((three.state, three.status), (two.state, SUCCESS));
    // SAFETY: a struct of numbers.
    let mut one: nvmlGpuFabricInfo_t = unsafe { zeroed() };
    ok!(lib.nvmlDeviceGetGpuFabricInfo(device, &raw mut one));
    assert_eq!(one.state, two.state);
}

#[test]
fn a_card_of_another_model_can_be_put_in() {
    let rig = Rig::new("dgx-a100");
    let new = sim::NewGpu {
        model: Some("h100-sxm5-80gb".to_owned()),
        ..Default::default()
    };
    let added = rig.node.add_gpu(&new).unwrap();
    let device = rig.device(u32::try_from(added.index).unwrap());
    let name = text(|b, n| code!(rig.lib.nvmlDeviceGetName(device, b, n))).unwrap();
    assert_eq!(name, "NVIDIA H100 80GB HBM3");
    let new = sim::NewGpu {
        model: Some("z9".to_owned()),
        ..Default::default()
    };
    let error = rig.node.add_gpu(&new).unwrap_err().to_string();
    assert!(error.contains("`z9`") && error.contains("t4"), "{error}");
}

#[test]
fn the_nearest_cards_are_those_up_to_a_distance() {
    let rig = Rig::new("dgx1-v100");
    let near = |level| {
        let (mut count, mut list) = (8, [std::ptr::null_mut(); 8]);
        let device = rig.device(0);
        ok!(rig.lib.nvmlDeviceGetTopologyNearestGpus(
            device,
            level,
            &raw mut count,
            list.as_mut_ptr()
        ));
        let found = list.iter().take(usize::try_from(count).unwrap());
        found.map(|device| rig.uuid(*device)).collect::<Vec<_>>()
    };
    let gpus = rig.node.list_gpus().unwrap();
    assert_eq!(near(10), [gpus[1].uuid.clone()]);
    assert_eq!(near(30).len(), 3);
    assert_eq!(near(50).len(), 7);
}
