//! Registration: after any restart or fault of the kubelet the full list is there again soon,
//! without a restart of the agent.

use std::time::Duration;

use sim::kubelet::{Era, Kubelet, RegistrationOutcome};

use crate::rig::{DGX, GPU, LONG, QUICK, Rig, Running, breaches};

/// Waits until a registration after the first `before` holds, with every device.
async fn again(kubelet: &Kubelet, before: usize) {
    let full = |kubelet: &Kubelet| {
        let devices = kubelet.resource_devices(GPU);
        let healthy = devices.values().filter(|device| device.healthy).count();
        let registrations = kubelet.registrations();
        let mut news = registrations.iter().skip(before);
        healthy == 8 && news.any(|r| r.outcome == RegistrationOutcome::Accepted)
    };
    let wanted = "a new registration with eight healthy devices";
    kubelet.wait_until(wanted, full, LONG).await.unwrap();
}

/// Checks that nothing was restarted, and that the contract was kept: at most one registration per
/// second, each with a new socket name.
async fn same_and_lawful(running: &Running) {
    let Running { agent, kubelet, .. } = running;
    let pid = Some(agent.pid().cast_signed());
    assert!(kubelet.registrations().iter().all(|r| r.pid == pid));
    let status = agent.status().await.unwrap();
    assert_eq!(status["pid"], agent.pid());
    assert_eq!(running.breaches(), [""; 0]);
}

#[tokio::test]
async fn a_restarted_kubelet_has_the_full_list_again() {
    let running = Running::start(DGX, QUICK).await;
    let before = running.kubelet.registrations().len();
    running.kubelet.restart_kubelet().await.unwrap();
    again(&running.kubelet, before).await;
    same_and_lawful(&running).await;
}

#[tokio::test]
async fn a_kubelet_that_restarts_twice_at_once_has_the_full_list_again() {
    let running = Running::start(DGX, QUICK).await;
    running
        .kubelet
        .restart_twice(Duration::from_millis(50))
        .await
        .unwrap();
    let before = running.kubelet.registrations().len();
    again(&running.kubelet, before).await;
    same_and_lawful(&running).await;
}

#[tokio::test]
async fn a_cut_stream_is_opened_again() {
    let running = Running::start(DGX, QUICK).await;
    let before = running.kubelet.registrations().len();
    assert!(running.kubelet.cut_stream(GPU));
    again(&running.kubelet, before).await;
    same_and_lawful(&running).await;
}

#[tokio::test]
async fn an_endpoint_forgotten_behind_an_open_stream_is_back() {
    let running = Running::start(DGX, QUICK).await;
    let before = running.kubelet.registrations().len();
    assert!(running.kubelet.forget_resource(GPU));
    again(&running.kubelet, before).await;
    same_and_lawful(&running).await;
}

#[tokio::test]
async fn an_agent_that_starts_first_serves_the_kubelet() {
    let rig = Rig::new(DGX);
    let agent = rig.agent(QUICK);
    agent
        .says("waiting for the kubelet", |status| {
            status["resources"][0]["phase"] == "WaitingForKubelet"
        })
        .await;
    let kubelet = rig.kubelet(Era::V1_36).await;
    again(&kubelet, 0).await;
    let running = Running {
        agent,
        kubelet,
        rig,
    };
    same_and_lawful(&running).await;
}

#[tokio::test]
async fn a_kubelet_that_starts_first_is_served_by_the_agent() {
    let rig = Rig::new(DGX);
    let kubelet = rig.kubelet(Era::V1_36).await;
    let agent = rig.agent(QUICK);
    again(&kubelet, 0).await;
    let running = Running {
        agent,
        kubelet,
        rig,
    };
    same_and_lawful(&running).await;
}

#[tokio::test]
async fn a_kubelet_that_appears_is_registered_with() {
    let rig = Rig::new(DGX);
    // On a node the folder exists before the agent: it is mounted into its container.
    fs_err::create_dir_all(rig.kubelet_dir()).unwrap();
    let agent = rig.agent(QUICK);
    agent
        .says("waiting for the kubelet", |status| {
            status["resources"][0]["phase"] == "WaitingForKubelet"
        })
        .await;
    let kubelet = rig.kubelet(Era::V1_37).await;
    again(&kubelet, 0).await;
    assert_eq!(breaches(&kubelet), [""; 0]);
}

#[tokio::test]
async fn told_not_to_register_it_serves_and_registers_nowhere() {
    let rig = Rig::new(DGX);
    let kubelet = rig.kubelet(Era::V1_37).await;
    let agent = rig.agent("kubelet: {register: false}\n");
    let status = agent
        .says("a socket", |status| {
            status["resources"][0]["socket"].is_string()
        })
        .await;
    let socket = status["resources"][0]["socket"].as_str().unwrap();
    assert!(rig.kubelet_dir().join(socket).exists(), "{socket}");
    assert_eq!(status["resources"][0]["units"], 8);
    assert_eq!(kubelet.registrations(), []);
}
