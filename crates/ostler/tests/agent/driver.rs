//! A driver that comes late, is removed, or comes back.

use std::time::Duration;

use api::DevicePage;
use model::Phase;
use sim::{Effect, kubelet::Era};

use crate::rig::{DGX, GPU, LONG, QUICK, Rig, Running};

/// `NVML_ERROR_DRIVER_NOT_LOADED` of nvml.h: the kernel module is missing.
const DRIVER_NOT_LOADED: u32 = 9;

fn in_phase(phase: Phase) -> impl Fn(&DevicePage) -> bool {
    move |snapshot| snapshot.backends.iter().any(|b| b.phase == phase)
}

#[tokio::test]
async fn an_agent_without_a_driver_says_so_and_serves_when_it_arrives() {
    let rig = Rig::new(DGX);
    rig.node.unplug_driver().unwrap();
    let kubelet = rig.kubelet(Era::V1_37).await;
    let agent = rig.agent("");
    let without = agent.shows("no driver", in_phase(Phase::NoDriver)).await;
    let message = &without.backends[0].message;
    assert!(message.contains("libnvidia-ml.so.1"), "{message}");
    assert_eq!(without.devices, []);
    let pid = agent.status().await.unwrap()["pid"].clone();

    rig.node.plug_driver().unwrap();
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    agent.shows("a driver", in_phase(Phase::Running)).await;
    assert_eq!(agent.status().await.unwrap()["pid"], pid);
}

#[tokio::test]
async fn a_driver_that_goes_takes_the_cards_out_and_brings_them_back() {
    let running = Running::start(DGX, QUICK).await;
    let Running {
        agent,
        kubelet,
        rig,
    } = &running;
    rig.node.unplug_driver().unwrap();
    let listed = kubelet.wait_healthy(GPU, 0, LONG).await.unwrap();
    assert_eq!(listed.len(), 8, "they stay listed, as unhealthy");
    let without = agent.shows("no driver", in_phase(Phase::NoDriver)).await;
    let reason = without.devices[0].verdict.join_evidence();
    assert!(reason.contains("no NVIDIA driver library"), "{reason}");

    rig.node.plug_driver().unwrap();
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    let registrations = kubelet.registrations();
    assert_eq!(registrations.len(), 1, "{registrations:?}");
    assert_eq!(running.breaches(), [""; 0]);
}

#[tokio::test]
async fn a_driver_that_refuses_to_start_is_named_and_tried_again() {
    let rig = Rig::new(DGX);
    let refuses = Effect::Fail {
        code: DRIVER_NOT_LOADED,
    };
    rig.node.set_fault("nvmlInit", None, refuses).unwrap();
    let kubelet = rig.kubelet(Era::V1_37).await;
    let agent = rig.agent("");
    let failed = agent
        .shows("a failed driver", in_phase(Phase::DriverFailed))
        .await;
    let message = &failed.backends[0].message;
    assert!(message.contains("DRIVER_NOT_LOADED"), "{message}");
    rig.node.clear_faults(None).unwrap();
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
}

#[tokio::test]
async fn waiting_for_a_driver_is_one_line_in_the_log() {
    let rig = Rig::new(DGX);
    rig.node.unplug_driver().unwrap();
    let agent = rig.agent(QUICK);
    agent.shows("no driver", in_phase(Phase::NoDriver)).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let log = agent.log();
    let lines = log.lines().filter(|line| line.contains("NoDriver"));
    assert_eq!(lines.count(), 1, "{log}");
}
