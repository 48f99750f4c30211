//! WSL and Tegra: machines whose cards are one device.

use api::DevicePage;

use super::Plugin;
use crate::rig::{GPU, card};

#[tokio::test]
async fn under_wsl_all_cards_are_one_device_with_one_node() {
    let running = Plugin::default().on("wsl").await;
    running.offers(&[(GPU, 1)]).await;
    let granted = running.admit(GPU, 1).await.unwrap();
    assert!(granted.devices[GPU].contains("all"));
    assert_eq!(granted.response.envs["NVIDIA_VISIBLE_DEVICES"], "all");
    let nodes = granted.response.devices.iter();
    let nodes: Vec<&str> = nodes.map(|node| node.container_path.as_str()).collect();
    assert_eq!(nodes, ["/dev/dxg"]);
    let log = running.agent.log();
    assert!(!log.contains("not visible"), "nothing is missed: {log}");
}

#[tokio::test]
async fn under_wsl_measurements_and_events_are_those_of_the_one_device() {
    let running = Plugin::default().on("wsl").await;
    running.offers(&[(GPU, 1)]).await;
    let measured = |seen: &DevicePage| {
        let entry = seen.find_listed("all");
        entry.is_some_and(|entry| entry.telemetry.is_some())
    };
    running.agent.shows("a sample", measured).await;
    running.rig.listening().await;
    running.rig.node.raise_xid(&card(0), 79).unwrap();
    running.sick(GPU, &["all"]).await;
}

/// `failOnInitError` is set and there is no NVML: a Tegra board needs none, and counts as started.
#[tokio::test]
async fn a_tegra_board_is_one_device_without_nodes() {
    let running = Plugin::args(&["--fail-on-init-error"]).on("tegra").await;
    running.offers(&[(GPU, 1)]).await;
    let granted = running.admit(GPU, 1).await.unwrap();
    assert!(granted.devices[GPU].contains("tegra"));
    assert_eq!(granted.response.envs["NVIDIA_VISIBLE_DEVICES"], "tegra");
    assert!(granted.response.devices.is_empty());
}
