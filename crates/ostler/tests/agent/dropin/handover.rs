//! Contents of a container's grant with each of NVIDIA's device list strategies.

use rstest::rstest;
use sim::kubelet::GrantedDevices;

use super::Plugin;
use crate::rig::{DGX, GPU};

const FOLDER: &str = "/var/run/nvidia-container-devices";

/// Admits a pod that asks for one card. Returns its grant and the card.
async fn granted(plugin: Plugin<'_>) -> (GrantedDevices, String) {
    let running = plugin.on(DGX).await;
    running.offers(&[(GPU, 8)]).await;
    let granted = running.admit(GPU, 1).await.unwrap();
    let card = granted.devices[GPU].first().unwrap().clone();
    (granted, card)
}

/// CDI name of a card.
fn cdi(card: &str) -> String {
    format!("k8s.device-plugin.nvidia.com/gpu={card}")
}

#[rstest]
#[case::variable(Plugin::variable(&[("DEVICE_LIST_STRATEGY", "volume-mounts")]))]
#[case::file(Plugin::file(
    "version: v1\nflags: {plugin: {deviceListStrategy: [volume-mounts]}}\n"
))]
#[tokio::test]
async fn volume_mounts_name_the_cards(#[case] plugin: Plugin<'_>) {
    let (granted, card) = granted(plugin).await;
    let response = &granted.response;
    assert_eq!(response.envs["NVIDIA_VISIBLE_DEVICES"], FOLDER);
    let mounts: Vec<(&str, &str)> = response
        .mounts
        .iter()
        .map(|mount| (mount.host_path.as_str(), mount.container_path.as_str()))
        .collect();
    let path = format!("{FOLDER}/{card}");
    assert_eq!(mounts, [("/dev/null", path.as_str())]);
    let nodes = response.devices.iter();
    let nodes: Vec<&str> = nodes.map(|node| node.container_path.as_str()).collect();
    assert!(nodes.contains(&"/dev/nvidiactl"), "{nodes:?}");
}

#[tokio::test]
async fn cdi_names_stand_in_the_annotation_and_in_the_answer() {
    let lists = [("DEVICE_LIST_STRATEGY", "cdi-annotations,cdi-cri")];
    let (granted, card) = granted(Plugin::variable(&lists)).await;
    let response = &granted.response;
    let names: Vec<&str> = response
        .cdi_devices
        .iter()
        .map(|d| d.name.as_str())
        .collect();
    assert_eq!(names, [cdi(&card)]);
    let annotations: Vec<_> = response.annotations.iter().collect();
    let [(key, value)] = annotations[..] else {
        panic!("{annotations:?}");
    };
    assert!(key.starts_with("cdi.k8s.io/"), "{key}");
    assert_eq!(*value, cdi(&card));
    assert!(!response.envs.contains_key("NVIDIA_VISIBLE_DEVICES"));
    assert!(response.devices.is_empty(), "the CDI device has the nodes");
}

#[tokio::test]
async fn device_nodes_are_left_out_only_where_somebody_says_so() {
    let (with, _) = granted(Plugin::default()).await;
    assert!(!with.response.devices.is_empty());
    let (without, card) = granted(Plugin::args(&["--pass-device-specs=false"])).await;
    assert!(without.response.devices.is_empty());
    assert_eq!(without.response.envs["NVIDIA_VISIBLE_DEVICES"], card);
}

#[tokio::test]
async fn cards_are_named_by_index_where_that_is_asked_for() {
    let running = Plugin::args(&["--device-id-strategy=index"]).on(DGX).await;
    running.offers(&[(GPU, 8)]).await;
    let granted = running.admit(GPU, 8).await.unwrap();
    let named = &granted.response.envs["NVIDIA_VISIBLE_DEVICES"];
    assert_eq!(named, "0,1,2,3,4,5,6,7");
}
