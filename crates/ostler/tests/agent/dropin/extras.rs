//! Device nodes beside those of cards: IMEX channels, GPUDirect Storage, GDRCopy and RDMA.

use std::collections::BTreeSet;

use sim::kubelet::PluginDevices;

use super::Plugin;
use crate::rig::{DGX, GPU, LONG, Rig, Running, unhealthy};

const CHANNEL: &str = "/dev/nvidia-caps-imex-channels/channel0";
const REQUIRED: &str = "version: v1\nimex: {channelIDs: [0], required: true}\n";

/// Makes device nodes on a node, as plain files like those of the simulated driver.
fn make(rig: &Rig, nodes: &[&str]) {
    for node in nodes {
        let file = rig.node.host_root().join(node.trim_start_matches('/'));
        fs_err::create_dir_all(file.parent().unwrap()).unwrap();
        fs_err::write(file, "").unwrap();
    }
}

/// Device nodes in the grant of a container with one card.
async fn nodes(running: &Running) -> BTreeSet<String> {
    let granted = running.admit(GPU, 1).await.unwrap();
    let nodes = granted.response.devices.into_iter();
    nodes.map(|node| node.container_path).collect()
}

#[tokio::test]
async fn a_channel_that_is_required_and_missing_holds_every_unit_back() {
    let running = Plugin::file(REQUIRED).on(DGX).await;
    let all = |devices: &PluginDevices| unhealthy(devices).len() == 8;
    running.kubelet.wait_devices(GPU, all, LONG).await.unwrap();
    let status = running.agent.status().await.unwrap();
    assert_eq!(status["notes"][0]["kind"], "waiting", "{status}");
    let log = running.agent.logged("is not handed out").await;
    let line = log.lines().find(|line| line.contains("is not handed out"));
    let line = line.expect("a line in the log");
    assert!(line.contains("WARN") && line.contains(CHANNEL), "{line}");

    make(&running.rig, &[CHANNEL]);
    running.rig.nudge().await;
    running.offers(&[(GPU, 8)]).await;
    let granted = running.admit(GPU, 1).await.unwrap();
    assert_eq!(granted.response.envs["NVIDIA_IMEX_CHANNELS"], "0");
    assert!(nodes(&running).await.contains(CHANNEL));
}

#[tokio::test]
async fn a_channel_that_is_required_and_missing_ends_it_where_that_is_asked_for() {
    let rig = Rig::new(DGX);
    let plugin = Plugin {
        args: &["--fail-on-init-error"],
        variables: &[("IMEX_CHANNEL_IDS", "0"), ("IMEX_REQUIRED", "true")],
        file: None,
    };
    let mut agent = plugin.start(&rig);
    assert_eq!(agent.ended().await.code(), Some(1));
    let log = agent.log();
    let last = log.lines().last().unwrap();
    for word in ["ostler: ", CHANNEL, "failOnInitError"] {
        assert!(last.contains(word), "{word} in {last}");
    }
}

#[tokio::test]
async fn a_channel_that_is_not_required_is_left_out_and_missed() {
    let running = Plugin::args(&["--imex-channel-ids=0"]).on(DGX).await;
    running.offers(&[(GPU, 8)]).await;
    let granted = running.admit(GPU, 1).await.unwrap();
    assert!(!granted.response.envs.contains_key("NVIDIA_IMEX_CHANNELS"));
    let text = "IMEX channel 0 is not handed over";
    let log = running.agent.logged(text).await;
    let mut lines = log.lines();
    let line = lines.find(|line| line.contains(text));
    assert!(line.is_some_and(|line| line.contains("WARN")), "{log}");
}

#[tokio::test]
async fn what_is_enabled_is_handed_over_with_its_nodes() {
    let there = [
        "/dev/gdrdrv",
        "/dev/infiniband/rdma_cm",
        "/dev/infiniband/uverbs0",
        "/dev/nvidia-fs0",
    ];
    let plugin = Plugin::args(&["--gds-enabled", "--gdrcopy-enabled", "--mofed-enabled"]);
    let running = plugin.on_prepared(DGX, |rig| make(rig, &there)).await;
    running.offers(&[(GPU, 8)]).await;
    let granted = running.admit(GPU, 1).await.unwrap();
    for variable in ["NVIDIA_GDS", "NVIDIA_GDRCOPY", "NVIDIA_MOFED"] {
        assert_eq!(granted.response.envs[variable], "enabled");
    }
    let given = nodes(&running).await;
    for node in there {
        assert!(given.contains(node), "{node} in {given:?}");
    }
}
