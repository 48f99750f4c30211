//! Machines with other devices than whole cards.

use super::*;

#[test]
fn under_wsl_there_is_one_node() {
    let at = |ids| {
        offer_of_devices(
            "nvidia.com/gpu",
            handover_pool(|h| h.ids = ids),
            vec![wsl()],
        )
    };
    let expected = "env NVIDIA_VISIBLE_DEVICES=all\nnode /dev/dxg rw\n";
    assert_eq!(given(&at(IdStrategy::Uuid), &["all"]), expected);
    assert_eq!(given(&at(IdStrategy::Index), &["all"]), expected);
}

#[rstest]
#[case(&[Envvar], "env NVIDIA_VISIBLE_DEVICES=all\nnode /dev/dxg rw\n")]
#[case(&[CdiCri], "cdi k8s.device-plugin.nvidia.com/gpu=all\n")]
fn shares_under_wsl_are_the_one_device(#[case] lists: &[ListStrategy], #[case] expected: &str) {
    let mut pool = sharing_pool(Method::TimeSlicing, 4);
    pool.handover.lists = lists.to_vec();
    let offer = offer_of_devices("nvidia.com/gpu", pool, vec![wsl()]);
    assert_eq!(given(&offer, &["all::3", "all::1"]), expected);
}

#[rstest]
#[case(IdStrategy::Uuid, &[Envvar], "env NVIDIA_VISIBLE_DEVICES=tegra\n")]
#[case(IdStrategy::Index, &[Envvar], "env NVIDIA_VISIBLE_DEVICES=0\n")]
#[case(IdStrategy::Index, &[CdiCri], "cdi k8s.device-plugin.nvidia.com/gpu=0\n")]
fn a_tegra_system_has_no_nodes_to_give(
    #[case] strategy: IdStrategy,
    #[case] lists: &[ListStrategy],
    #[case] expected: &str,
) {
    let pool = handover_pool(|handover| {
        handover.ids = strategy;
        handover.lists = lists.to_vec();
    });
    let offer = offer_of_devices("nvidia.com/gpu", pool, vec![tegra_device()]);
    assert_eq!(given(&offer, &["tegra"]), expected);
}

#[test]
fn a_vgpu_is_handed_over_like_a_card() {
    let guest = offer_of_devices("nvidia.com/gpu", handover_pool(|_| ()), vec![vgpu_card()]);
    let host = four_cards(handover_pool(|_| ()));
    assert_eq!(given(&guest, &["GPU-d"]), given(&host, &["GPU-d"]));
}

#[test]
fn mig_devices_have_their_cards_node_once_and_their_capabilities() {
    let pool = listed_pool(&[Envvar, VolumeMounts]);
    let devices = vec![
        indexed_partition(0, 0),
        indexed_partition(0, 1),
        indexed_partition(1, 0),
    ];
    let offer = offer_of_devices("nvidia.com/mig-1g.5gb", pool, devices);
    insta::assert_snapshot!(given(&offer, &["MIG-0-1", "MIG-0-0"]), @r"
    env NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices
    mount /dev/null -> /var/run/nvidia-container-devices/MIG-0-1
    mount /dev/null -> /var/run/nvidia-container-devices/MIG-0-0
    node /dev/nvidia-caps/nvidia-cap12 rw
    node /dev/nvidia-caps/nvidia-cap13 rw
    node /dev/nvidia-caps/nvidia-cap21 rw
    node /dev/nvidia-caps/nvidia-cap22 rw
    node /dev/nvidia-uvm rw
    node /dev/nvidia0 rw
    node /dev/nvidiactl rw
    ");
}

#[test]
fn mig_devices_by_index() {
    let pool = handover_pool(|handover| handover.ids = IdStrategy::Index);
    let devices = vec![
        indexed_partition(1, 0),
        indexed_partition(0, 1),
        indexed_partition(0, 0),
    ];
    let offer = offer_of_devices("nvidia.com/mig-1g.5gb", pool, devices);
    let given = grant_ids(&offer, &to_ids(&["MIG-1-0", "MIG-0-1", "MIG-0-0"])).unwrap();
    assert_eq!(given.edits.env[VISIBLE_DEVICES], "0:0,0:1,1:0");
}

#[test]
fn nodes_that_the_agent_does_not_see_are_left_out() {
    let mut blind = indexed_card(0);
    blind.nodes.clear();
    let offer = offer_of_devices(
        "nvidia.com/gpu",
        handover_pool(|_| ()),
        vec![blind, indexed_card(1)],
    );
    let given = given(&offer, &["GPU-d"]);
    assert_eq!(given, "env NVIDIA_VISIBLE_DEVICES=GPU-d\n");
    assert_eq!(crate::handover_notes(&offer).len(), 1);
}

#[test]
fn shares_of_a_card_are_one_card() {
    let offer = four_cards(sharing_pool(Method::TimeSlicing, 3));
    let one = given(&offer, &["GPU-b::0"]);
    assert_eq!(given(&offer, &["GPU-b::2", "GPU-b::0", "GPU-b::1"]), one);
    assert_eq!(one, given(&four_cards(handover_pool(|_| ())), &["GPU-b"]));
}

#[test]
fn mps_clients_get_the_pipe_and_the_shared_memory() {
    let mut pool = sharing_pool(Method::Mps, 2);
    pool.handover.nvidia.mps_root = Some("/srv/mps".into());
    let offer = offer_of_devices(
        "nvidia.com/gpu.shared",
        pool,
        vec![indexed_card(0), indexed_card(1)],
    );
    insta::assert_snapshot!(given(&offer, &["GPU-c::1"]), @r"
    env CUDA_MPS_PIPE_DIRECTORY=/mps/nvidia.com/gpu.shared/pipe
    env NVIDIA_VISIBLE_DEVICES=GPU-c
    mount /srv/mps/nvidia.com/gpu.shared/pipe -> /mps/nvidia.com/gpu.shared/pipe
    mount /srv/mps/shm -> /dev/shm
    node /dev/nvidia-uvm rw
    node /dev/nvidia1 rw
    node /dev/nvidiactl rw
    ");
}

#[test]
fn mps_comes_before_the_mounts_that_name_devices_and_with_cdi_too() {
    let mut pool = sharing_pool(Method::Mps, 2);
    pool.handover.lists = vec![VolumeMounts];
    let volumes = grant_ids(&four_cards(pool.clone()), &to_ids(&["GPU-c::1"])).unwrap();
    let inside = volumes
        .edits
        .mounts
        .iter()
        .map(|m| m.container_path.as_str());
    let expected = [
        "/mps/nvidia.com/gpu/pipe",
        "/dev/shm",
        "/var/run/nvidia-container-devices/GPU-c",
    ];
    assert_eq!(inside.collect::<Vec<_>>(), expected);
    assert_eq!(volumes.edits.mounts[1].host_path, "/run/nvidia/mps/shm");

    pool.handover.lists = vec![CdiCri];
    let names = grant_ids(&four_cards(pool), &to_ids(&["GPU-c::1"])).unwrap();
    assert_eq!(names.edits.mounts, volumes.edits.mounts[..2]);
    let pipe = &names.edits.env["CUDA_MPS_PIPE_DIRECTORY"];
    assert_eq!(pipe, "/mps/nvidia.com/gpu/pipe");
}

#[rstest]
#[case(Method::None)]
#[case(Method::TimeSlicing)]
#[case(Method::Auto)]
fn without_mps_there_is_nothing_of_it(#[case] method: Method) {
    let offer = four_cards(sharing_pool(method, 1));
    let id = offer.units[0].id.to_string();
    let given = grant_ids(&offer, &[id]).unwrap();
    assert!(
        given.edits.mounts.is_empty() && given.edits.env.len() == 1,
        "{given:?}"
    );
}

#[test]
fn devices_of_others_get_their_nodes_and_nothing_of_nvidias() {
    for lists in subsets() {
        let pool = handover_pool(|handover| {
            handover.lists = lists;
            handover.nvidia.dev_root = "/run/nvidia/driver".into();
            handover.nvidia.gds = true;
            handover.nvidia.imex = vec![0];
            handover.nvidia.capabilities = Some("all".to_owned());
        });
        let offer = with_extras(
            all_extras(),
            offer_of_devices("amd.com/gpu", pool, vec![foreign()]),
        );
        let expected = "node /dev/dri/renderD128 rw\n\
                        node /dev/kfd rw\n";
        assert_eq!(given(&offer, &["0x1234"]), expected);
    }
}

#[test]
fn beside_devices_of_others_each_has_its_own() {
    let pool = listed_pool(&[CdiCri]);
    let offer = offer_of_devices("example.com/any", pool, vec![foreign(), indexed_card(0)]);
    let expected = "node /dev/dri/renderD128 rw\n\
                    node /dev/kfd rw\n\
                    cdi k8s.device-plugin.nvidia.com/gpu=GPU-d\n";
    assert_eq!(given(&offer, &["0x1234", "GPU-d"]), expected);
}
