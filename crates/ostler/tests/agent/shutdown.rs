//! Shutdown of the agent: in time, without errors in the log, and without sockets left behind.

use rustix::process::Signal;

use crate::{
    process::{is_probe, signal},
    rig::{DGX, MIG, QUICK, Rig, Running, eventually, sockets},
};

#[rstest::rstest]
#[case::whole(DGX)]
#[case::partitioned(MIG)]
#[tokio::test]
async fn a_stopped_agent_leaves_no_socket_and_no_probe_behind(#[case] profile: &str) {
    let mut running = Running::start(profile, QUICK).await;
    let probes = running.agent.probes();
    assert!(!sockets(&running.rig.kubelet_dir()).is_empty());
    assert!(running.agent.control.exists());
    running.agent.stop().await;
    assert_eq!(sockets(&running.rig.kubelet_dir()), [""; 0]);
    assert!(!running.agent.control.exists());
    eventually("the probes are gone", || {
        !probes.iter().any(|pid| is_probe(*pid))
    })
    .await;
}

#[tokio::test]
async fn a_signal_to_every_process_ends_the_agent_without_a_complaint() {
    let mut running = Running::start(DGX, QUICK).await;
    let agent = &mut running.agent;
    agent
        .shows("a first look", |seen| !seen.devices.is_empty())
        .await;
    let before = agent.log().len();
    for probe in agent.probes() {
        signal(probe, Signal::TERM);
    }
    agent.ends_well(Signal::TERM).await;
    let log = agent.log();
    let farewell = &log[before..];
    let complaints = farewell
        .lines()
        .filter(|line| line.contains(" ERROR ") || line.contains(" WARN "));
    assert_eq!(complaints.collect::<Vec<_>>(), [""; 0], "{log}");
    assert!(farewell.contains("ostler stops"), "{log}");
}

#[rstest::rstest]
#[case(Signal::INT)]
#[case(Signal::QUIT)]
#[tokio::test]
async fn other_signals_to_stop_do_so_too(#[case] name: Signal) {
    let rig = Rig::new(DGX);
    let mut agent = rig.agent(QUICK);
    agent
        .shows("a first look", |seen| !seen.devices.is_empty())
        .await;
    agent.ends_well(name).await;
    assert!(!agent.control.exists());
}

#[tokio::test]
async fn a_stale_control_socket_of_a_killed_agent_is_replaced() {
    let rig = Rig::new(DGX);
    let mut first = rig.agent(QUICK);
    first
        .shows("a first look", |seen| !seen.devices.is_empty())
        .await;
    first.signal(Signal::KILL);
    first.ended().await;
    assert!(first.control.exists());
    let second = rig.agent(QUICK);
    let pid = second.pid();
    second
        .says("its own state", |status| status["pid"] == pid)
        .await;
}
