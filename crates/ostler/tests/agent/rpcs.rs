//! The kubelet's calls: answered from the present offer, without a driver call, even if a card fails.

use std::time::Duration;

use sim::{
    Effect,
    kubelet::{Era, Kubelet},
};
use tokio::time::{Instant, sleep};

use crate::rig::{DGX, GPU, LONG, QUICK, Rig, Running, card};

/// `NVML_ERROR_UNKNOWN` of nvml.h.
const UNKNOWN: u32 = 999;

/// Admits a thousand pods of one and of four cards. Each must get its cards, and never the lost one.
async fn a_thousand_pods_avoid(running: &Running, lost: &str) {
    for pod in 0..1000 {
        let size = [1, 4][pod % 2];
        let got = running.borrow(GPU, size).await;
        assert_eq!(got.len(), size);
        assert!(!got.contains(lost), "pod {pod} got the lost card");
    }
    assert_eq!(running.breaches(), [""; 0]);
}

#[tokio::test]
async fn a_lost_card_is_never_handed_out_and_no_pod_is_refused() {
    let running = Running::start(DGX, QUICK).await;
    let lost = running.rig.uuid(3);
    running.rig.node.lose_cards(&card(3)).unwrap();
    running.sick(GPU, &[&lost]).await;
    a_thousand_pods_avoid(&running, &lost).await;
}

#[tokio::test]
async fn no_pod_is_refused_when_the_driver_could_not_be_started_any_more() {
    let running = Running::start(DGX, QUICK).await;
    let lost = running.rig.uuid(3);
    running.rig.node.lose_cards(&card(3)).unwrap();
    running.sick(GPU, &[&lost]).await;
    let fails = Effect::Fail { code: UNKNOWN };
    running.rig.node.set_fault("nvmlInit", None, fails).unwrap();
    a_thousand_pods_avoid(&running, &lost).await;
}

#[tokio::test]
async fn no_call_of_the_kubelet_causes_a_driver_call() {
    let config = "probe: {period: 1h}\nhealth: {working: off, performing: off, trend: off}\n";
    let running = Running::start(DGX, config).await;
    running
        .agent
        .shows("samples of all devices", |snapshot| {
            let mut devices = snapshot.devices.iter();
            devices.all(|entry| entry.telemetry.is_some())
        })
        .await;
    running.rig.listening().await;
    let before = settled(&running.rig).await;
    assert!(before > 0, "the calls are not recorded");
    for pod in 0..1000 {
        running.borrow(GPU, [1, 4][pod % 2]).await;
    }
    assert_eq!(running.rig.calls(), before);
}

/// Waits until the probe makes no more calls, and returns their number.
async fn settled(rig: &Rig) -> usize {
    let quiet = Duration::from_secs(3);
    let begun = Instant::now();
    loop {
        let before = rig.calls();
        sleep(quiet).await;
        if rig.calls() == before {
            return before;
        }
        assert!(begun.elapsed() < LONG, "the probe never rests");
    }
}

#[tokio::test]
async fn a_pod_gets_its_cards_by_variable_and_by_device_node() {
    let rig = Rig::new(DGX);
    let kubelet: Kubelet = rig.kubelet(Era::V1_37).await;
    let _agent = rig.agent(QUICK);
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    let pod = sim::kubelet::Pod::new("default", "guest").with_container("main", [(GPU, 2)]);
    let admitted = kubelet.admit_pod(pod).await.unwrap();
    let granted = &admitted.containers["main"];
    let variable = &granted.response.envs["NVIDIA_VISIBLE_DEVICES"];
    let mut named: Vec<&str> = variable.split(',').collect();
    named.sort_unstable();
    let ids: Vec<&str> = granted.devices[GPU].iter().map(String::as_str).collect();
    assert_eq!(named, ids);
    let paths: Vec<&str> = granted
        .response
        .devices
        .iter()
        .map(|device| device.container_path.as_str())
        .collect();
    for gpu in rig.node.list_gpus().unwrap() {
        let path = format!("/dev/nvidia{}", gpu.minor);
        let is_there = paths.contains(&path.as_str());
        assert_eq!(is_there, ids.contains(&gpu.uuid.as_str()), "{paths:?}");
    }
    assert!(paths.contains(&"/dev/nvidiactl"), "{paths:?}");
}
