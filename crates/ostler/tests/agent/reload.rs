//! Reload: a new config is applied while the agent runs, and an invalid one changes nothing.

use std::process::Output;

use rustix::process::Signal;

use crate::{
    process::{Agent, ostler},
    rig::{DGX, GPU, LONG, QUICK, Rig, Running, card},
};

/// Config with a period so long that the probe reports once.
const ONCE: &str = "probe: {period: 1h}\n";

/// Writes a new config and sends SIGHUP to the agent.
fn reload(running: &Running, config: &str) {
    fs_err::write(running.rig.path("ostler.yaml"), config).unwrap();
    running.agent.signal(Signal::HUP);
}

/// Waits until a sample has this temperature.
async fn feels(running: &Running, degrees: u32) {
    let id = running.rig.uuid(0);
    let warm = |seen: &api::DevicePage| {
        let telemetry = seen
            .find_listed(&id)
            .and_then(|entry| entry.telemetry.as_ref());
        telemetry.is_some_and(|t| t.temperature_celsius == Some(degrees))
    };
    running
        .agent
        .shows(&format!("{degrees} degrees"), warm)
        .await;
}

fn warm(running: &Running, degrees: u64) {
    let node = &running.rig.node;
    node.set_sensor(&card(0), "temperature", degrees).unwrap();
}

fn problem(agent: &serde_json::Value) -> Option<&str> {
    agent["config"]["problem"].as_str()
}

#[tokio::test]
async fn a_new_probe_period_is_used_and_the_kubelet_is_not_bothered() {
    let running = Running::start(DGX, ONCE).await;
    let Running { agent, kubelet, .. } = &running;
    let probes = agent.probes();
    let loaded = agent.status().await.unwrap()["config"]["loaded"].clone();
    reload(&running, QUICK);
    agent
        .says("a newer config", |status| {
            status["config"]["loaded"] != loaded
        })
        .await;
    // A new probe reports once in any case. Only one with the new period reports again.
    for degrees in [66, 67, 68] {
        warm(&running, degrees.into());
        feels(&running, degrees).await;
    }
    assert_ne!(agent.probes(), probes);
    assert_eq!(kubelet.registrations().len(), 1);
    for list in kubelet.device_lists(GPU) {
        let healthy = list.devices.iter().filter(|d| d.health == "Healthy");
        assert_eq!(healthy.count(), 8);
    }
    assert_eq!(agent.status().await.unwrap()["pid"], agent.pid());
}

#[tokio::test]
async fn a_new_config_does_not_heal_a_card() {
    let running = Running::start(DGX, ONCE).await;
    let Running { agent, rig, .. } = &running;
    let sick = rig.uuid(2);
    rig.listening().await;
    rig.node.raise_xid(&card(2), 79).unwrap();
    running.sick(GPU, &[&sick]).await;
    reload(&running, QUICK);
    warm(&running, 66);
    feels(&running, 66).await;
    running.sick(GPU, &[&sick]).await;
    let seen = agent.devices().await.unwrap();
    let reason = seen.find_listed(&sick).unwrap().verdict.join_evidence();
    assert!(reason.contains("XID 79"), "{reason}");
}

#[tokio::test]
async fn a_config_that_says_the_same_restarts_nothing() {
    let running = Running::start(DGX, QUICK).await;
    let Running { agent, kubelet, .. } = &running;
    let (probes, status) = (agent.probes(), agent.status().await.unwrap());
    reload(&running, &format!("# a comment\n{QUICK}"));
    agent
        .says("a newer config", |now| {
            now["config"]["loaded"] != status["config"]["loaded"]
        })
        .await;
    warm(&running, 66);
    feels(&running, 66).await;
    assert_eq!(agent.probes(), probes);
    assert_eq!(kubelet.registrations().len(), 1);
}

#[tokio::test]
async fn a_broken_config_leaves_the_last_good_one_at_work_and_is_shown() {
    let running = Running::start(DGX, QUICK).await;
    let Running { agent, kubelet, .. } = &running;
    reload(&running, "probe:\n  period: soon\n");
    let status = agent.says("the problem", |s| problem(s).is_some()).await;
    let text = problem(&status).unwrap();
    assert!(text.contains("ostler.yaml"), "{text}");
    assert!(text.contains("ostler.yaml:2:11: probe.period"), "{text}");
    warm(&running, 66);
    feels(&running, 66).await;
    assert_eq!(kubelet.registrations().len(), 1);

    reload(&running, QUICK);
    agent.says("no problem", |s| problem(s).is_none()).await;
    running.complete(LONG).await;
    assert_eq!(kubelet.registrations().len(), 1);
}

#[tokio::test]
async fn a_flag_stands_above_a_reloaded_file() {
    let running = Running::start(DGX, QUICK).await;
    reload(
        &running,
        "kubelet: {dir: /nowhere}\nprobe: {period: 500ms}\n",
    );
    warm(&running, 66);
    feels(&running, 66).await;
    running.complete(LONG).await;
    assert_eq!(running.kubelet.registrations().len(), 1);
}

fn run(arguments: &[&str]) -> Output {
    ostler().args(arguments).output().unwrap()
}

#[tokio::test]
async fn a_broken_config_at_the_start_ends_with_78_and_says_where() {
    let rig = Rig::new(DGX);
    let mut agent: Agent = rig.agent("probe:\n  perod: 3s\n");
    let status = agent.ended().await;
    assert_eq!(status.code(), Some(78));
    let log = agent.log();
    assert!(log.contains("ostler.yaml"), "{log}");
    assert!(log.contains("ostler.yaml:2:3: probe.perod"), "{log}");
    assert!(log.contains("`period`"), "{log}");
}

#[test]
fn an_absent_config_at_the_start_ends_with_78_and_names_it() {
    let output = run(&["run", "--config", "/nowhere/ostler.yaml"]);
    assert_eq!(output.status.code(), Some(78));
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("/nowhere/ostler.yaml"), "{complaint}");
}

#[test]
fn a_wrong_flag_ends_with_64_and_names_it() {
    let output = run(&["run", "--kubelet-dri", "/a"]);
    assert_eq!(output.status.code(), Some(64));
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("--kubelet-dri"), "{complaint}");
}
