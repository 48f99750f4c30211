//! CDI specs on WSL and Tegra: all cards are one device, and the driver's files are in other places.

use super::*;

const BY_INDEX: &str = "handover: {lists: [cdi-cri], ids: index}\n";

#[rstest]
#[case::wsl("wsl", CRI, "all", "/dev/dxg")]
#[case::wsl_by_index("wsl", BY_INDEX, "all", "/dev/dxg")]
#[case::tegra("tegra", CRI, "tegra", "/dev/nvmap")]
#[case::tegra_by_index("tegra", BY_INDEX, "0", "/dev/nvmap")]
#[tokio::test]
async fn the_one_device_is_handed_over_by_its_name(
    #[case] profile: &str,
    #[case] config: &str,
    #[case] name: &str,
    #[case] node: &str,
) {
    let running = Running::start(profile, config).await;
    running.offers(&[(GPU, 1)]).await;
    let granted = running.admit(GPU, 1).await.unwrap();
    assert_eq!(cdi(&granted), [format!("{KIND}={name}")]);
    assert!(granted.response.devices.is_empty(), "the spec has them");
    assert!(granted.response.envs.is_empty());
    let spec = spec(&running.rig).unwrap();
    let nodes = &spec.find_device(name).unwrap().container_edits.device_nodes;
    assert!(nodes.iter().any(|own| own.path == node), "{nodes:?}");
    let mounts = &spec.container_edits.mounts;
    let cuda = |mount: &rules::Mount| mount.container_path.ends_with("/libcuda.so.1.1");
    assert!(mounts.iter().any(cuda), "the driver's files are in it");
}

#[tokio::test]
async fn what_a_board_misses_is_said_and_comes_with_its_files() {
    let rig = Rig::new("tegra");
    let csv = "etc/nvidia-container-runtime/host-files-for-container.d";
    let (folder, aside) = (rig.node.host_root().join(csv), rig.path("aside"));
    fs_err::rename(&folder, &aside).unwrap();
    let running = first(rig, CRI).await;
    let agent = &running.agent;
    agent
        .says("what is missed", |s| told(s, "devices.csv"))
        .await;
    running.sick(GPU, &["tegra"]).await;
    fs_err::rename(&aside, &folder).unwrap();
    // A probe reads the files at its start and once in a minute.
    agent.kill_probes();
    running.sick(GPU, &[]).await;
    let granted = running.admit(GPU, 1).await.unwrap();
    assert_eq!(cdi(&granted), [format!("{KIND}=tegra")]);
}
