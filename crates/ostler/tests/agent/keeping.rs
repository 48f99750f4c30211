//! A restart of the agent neither heals nor breaks a card.

use std::time::Duration;

use sim::kubelet::Era;

use crate::{
    process::Agent,
    rig::{DGX, GPU, LONG, QUICK, Rig, Running, card, eventually, unhealthy},
};

const FILE: &str = "kubelet/ostler-state.json";

/// Node whose card 2 is unhealthy after an XID. The state file has the cause and the card's counters.
async fn broken() -> Running {
    let running = Running::start(DGX, QUICK).await;
    let rig = &running.rig;
    rig.listening().await;
    rig.node.raise_xid(&card(2), 79).unwrap();
    running.sick(GPU, &[&rig.uuid(2)]).await;
    rig.counted(2).await;
    running
}

/// Waits until the state file has a text.
async fn kept(rig: &Rig, what: &str) {
    let file = rig.path(FILE);
    eventually("the state file has it", || {
        fs_err::read_to_string(&file).is_ok_and(|text| text.contains(what))
    })
    .await;
}

/// Stops the agent, changes the node with `between`, starts the next agent, and waits for its list.
async fn restart(running: &mut Running, between: impl FnOnce(&Rig)) {
    running.agent.stop().await;
    between(&running.rig);
    let registered = running.kubelet.registrations().len();
    running.agent = Agent::start(&running.rig, "ostler");
    let again = |kubelet: &sim::kubelet::Kubelet| {
        kubelet.registrations().len() > registered && !kubelet.resource_devices(GPU).is_empty()
    };
    let wait = running.kubelet.wait_until("the next agent", again, LONG);
    wait.await.unwrap();
}

#[tokio::test]
async fn a_broken_card_is_unhealthy_from_the_first_list_on() {
    let mut running = broken().await;
    let lists = running.kubelet.device_lists(GPU).len();
    restart(&mut running, |_| {}).await;
    let sick = running.rig.uuid(2);
    running.sick(GPU, &[&sick]).await;
    for list in &running.kubelet.device_lists(GPU)[lists..] {
        let mut devices = list.devices.iter();
        let healthy = devices.any(|d| d.id == sick && d.health == "Healthy");
        assert!(!healthy, "{list:?}");
    }
    let log = running.agent.log();
    let told = log.matches("a device is not healthy").count();
    assert_eq!(told, 1, "what was known is no news: {log}");
}

#[tokio::test]
async fn a_card_that_was_healed_before_is_not_held() {
    let mut running = broken().await;
    running
        .rig
        .node
        .reset_cards(&card(2), Duration::ZERO)
        .unwrap();
    running.complete(LONG).await;
    let lists = running.kubelet.device_lists(GPU).len();
    restart(&mut running, |_| {}).await;
    running.complete(LONG).await;
    for list in &running.kubelet.device_lists(GPU)[lists..] {
        assert!(list.devices.iter().all(|d| d.health == "Healthy"));
    }
}

#[tokio::test]
async fn a_start_of_the_node_or_of_the_driver_heals_what_needed_a_reset() {
    let mut running = broken().await;
    restart(&mut running, |rig| rig.node.reboot().unwrap()).await;
    running.complete(LONG).await;

    running.rig.listening().await;
    running.rig.node.raise_xid(&card(3), 79).unwrap();
    running.sick(GPU, &[&running.rig.uuid(3)]).await;
    kept(&running.rig, &running.rig.uuid(3)).await;
    restart(&mut running, |rig| rig.node.reload_driver().unwrap()).await;
    running.complete(LONG).await;
}

#[tokio::test]
async fn a_reset_while_no_agent_runs_heals_too() {
    let mut running = broken().await;
    restart(&mut running, |rig| {
        rig.node.reset_cards(&card(2), Duration::ZERO).unwrap();
    })
    .await;
    running.complete(LONG).await;
}

#[tokio::test]
async fn a_driver_that_is_loaded_anew_meanwhile_heals_too() {
    let running = broken().await;
    running.rig.node.reload_driver().unwrap();
    running.complete(LONG).await;
}

#[tokio::test]
async fn a_lost_card_is_lost_after_a_restart_too() {
    let running = Running::start(DGX, QUICK).await;
    running.rig.node.lose_cards(&card(5)).unwrap();
    running.sick(GPU, &[&running.rig.uuid(5)]).await;
    kept(&running.rig, &running.rig.uuid(5)).await;
    let mut running = running;
    // The card answers again while no agent runs: it still has to pass the hold-down.
    let lists = running.kubelet.device_lists(GPU).len();
    restart(&mut running, |rig| {
        rig.node.restore_cards(&card(5)).unwrap()
    })
    .await;
    running.complete(LONG).await;
    let lists = &running.kubelet.device_lists(GPU)[lists..];
    let first = lists.iter().find(|list| list.devices.len() == 8).unwrap();
    let well = first.devices.iter().filter(|d| d.health == "Healthy");
    assert_eq!(well.count(), 7, "not at once");
}

#[tokio::test]
async fn garbage_is_reported_and_hinders_nothing() {
    let rig = Rig::new(DGX);
    let kubelet = rig.kubelet(Era::V1_37).await;
    fs_err::write(rig.path(FILE), [0xff; 5000]).unwrap();
    let agent = rig.agent(QUICK);
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    agent.logged("the state file is of no use").await;
    assert_eq!(unhealthy(&kubelet.resource_devices(GPU)), [""; 0]);
}

/// Waits until the status page has this problem with the state file, or none.
async fn problem(running: &Running, wanted: Option<&str>) {
    let so = |status: &serde_json::Value| {
        let problem = status["state"]["problem"].as_str();
        problem.is_some() == wanted.is_some()
            && problem.is_none_or(|problem| problem.contains(wanted.unwrap_or_default()))
    };
    running.agent.says("the state of the file", so).await;
}

/// The contents of the file are not lost, and changes from before it could be read are added to them.
#[tokio::test]
async fn a_file_that_cannot_be_read_at_first_counts_when_it_can() {
    let mut running = broken().await;
    let (file, aside) = (running.rig.path(FILE), running.rig.path("aside.json"));
    restart(&mut running, |_| {
        fs_err::rename(&file, &aside).unwrap();
        std::os::unix::fs::symlink(&file, &file).unwrap();
    })
    .await;
    running.complete(LONG).await;
    problem(&running, Some("symbolic link")).await;
    running.rig.listening().await;
    running.rig.node.raise_xid(&card(4), 79).unwrap();
    running.sick(GPU, &[&running.rig.uuid(4)]).await;
    assert!(file.is_symlink(), "it is not replaced unread");

    fs_err::rename(&aside, &file).unwrap();
    let mut sick = [running.rig.uuid(2), running.rig.uuid(4)];
    sick.sort();
    running.sick(GPU, &[&sick[0], &sick[1]]).await;
    problem(&running, None).await;
    kept(&running.rig, &running.rig.uuid(4)).await;
    kept(&running.rig, &running.rig.uuid(2)).await;
    let log = running.agent.log();
    assert_eq!(log.matches("the state file cannot be read").count(), 1);
}

#[tokio::test]
async fn a_file_that_another_agent_left_elsewhere_is_taken_over_and_not_replaced() {
    let mut running = broken().await;
    let (file, other) = (running.rig.path(FILE), running.rig.path("other.json"));
    restart(&mut running, |_| fs_err::rename(&file, &other).unwrap()).await;
    running.complete(LONG).await;
    let file = other.display();
    let quick = "probe: {period: 500ms}\nhealth: {holdDown: 500ms, passes: 2";
    running.rewrite(&format!("{quick}, stateFile: {file}}}\n"));
    running.sick(GPU, &[&running.rig.uuid(2)]).await;
}

#[tokio::test]
async fn the_file_can_be_elsewhere_or_nowhere() {
    let rig = Rig::new(DGX);
    let kubelet = rig.kubelet(Era::V1_37).await;
    let config = |file: &str| {
        format!("probe: {{period: 500ms}}\nhealth: {{stateFile: {file}, passes: 1}}\n")
    };
    let agent = rig.agent(&config("off"));
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    rig.listening().await;
    rig.node.raise_xid(&card(1), 79).unwrap();
    kubelet.wait_healthy(GPU, 7, LONG).await.unwrap();
    let other = rig.path("elsewhere.json");
    let running = Running {
        agent,
        kubelet,
        rig,
    };
    running.rewrite(&config(&other.display().to_string()));
    eventually("the file is there", || other.exists()).await;
    assert!(!running.rig.path(FILE).exists());
}
