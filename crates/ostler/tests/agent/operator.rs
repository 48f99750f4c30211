//! Commands of an operator: cordon, uncordon, release, resume, health.

use std::process::Output;

use model::{Cause, CauseKind, State};
use rstest::rstest;
use serde_json::Value;
use sim::Effect;

use crate::{
    process::{Agent, ostler},
    rig::{DGX, GPU, LONG, MIG, QUICK, Running, card, eventually},
};

/// Runs a command with the agent's control socket.
async fn run(running: &Running, args: &[&str]) -> Output {
    let mut command = ostler();
    command.args(args);
    command.arg("--control-socket").arg(&running.agent.control);
    let run = move || command.output().unwrap();
    tokio::task::spawn_blocking(run).await.unwrap()
}

/// Runs a command that must succeed, and returns its output.
pub(crate) async fn said(running: &Running, args: &[&str]) -> String {
    let output = run(running, args).await;
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {problem}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail, and returns its error.
async fn complaint(running: &Running, args: &[&str]) -> String {
    let output = run(running, args).await;
    assert!(!output.status.success(), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn a_cordoned_card_is_out_until_it_is_uncordoned_and_over_a_restart() {
    let mut running = Running::start(DGX, QUICK).await;
    let id = running.rig.uuid(3);
    let text = said(&running, &["cordon", "3", "--reason", "a new fan"]).await;
    assert_eq!(text, format!("{id} is cordoned\n"));
    running.sick(GPU, &[&id]).await;
    let seen = running.agent.devices().await.unwrap();
    assert_eq!(
        seen.find_listed(&id).unwrap().verdict.state,
        State::Maintenance
    );

    let file = running.rig.path("kubelet/ostler-state.json");
    let kept = fs_err::read_to_string(&file).unwrap();
    assert!(
        kept.contains("a new fan"),
        "it was answered when it is kept"
    );
    running.agent.stop().await;
    running.agent = Agent::start(&running.rig, "ostler");
    running.kubelet.wait_healthy(GPU, 7, LONG).await.unwrap();
    running.sick(GPU, &[&id]).await;

    let text = said(&running, &["uncordon", &id[..12]]).await;
    assert_eq!(text, format!("{id} is uncordoned\n"));
    running.complete(LONG).await;
}

fn in_temp(name: &str) -> String {
    std::env::temp_dir().join(name).display().to_string()
}

/// Cordons a card of an agent with this state file. Returns the output of the command.
async fn told_with(file: &str) -> (Running, String) {
    let config = format!("probe: {{period: 500ms}}\nhealth: {{stateFile: {file}}}\n");
    let running = Running::start(DGX, &config).await;
    let text = said(&running, &["cordon", "3"]).await;
    running.sick(GPU, &[&running.rig.uuid(3)]).await;
    (running, text)
}

#[rstest::rstest]
#[case::off("off", "health.stateFile is off")]
#[case::no_folder("/no/such/folder/state.json", "its folder is not there")]
// The name of the draft, which the agent renames to this, would be longer than 255 bytes.
#[case::cannot_be_written(&in_temp(&"s".repeat(250)), "too long")]
#[tokio::test]
async fn a_cordon_that_does_not_outlive_the_agent_says_so(#[case] file: &str, #[case] why: &str) {
    let (running, text) = told_with(file).await;
    assert!(text.contains("is cordoned; a restart"), "{text}");
    assert!(text.contains(why), "{text}");
    let order = serde_json::json!({"device": "4", "reason": "a new fan"});
    let answer = web::client::post(&running.agent.control, "/v1/cordon", &order).await;
    let answer: Value = serde_json::from_slice(&answer.unwrap()).unwrap();
    assert!(
        answer["not_kept"].as_str().unwrap().contains(why),
        "{answer}"
    );
    let text = said(&running, &["uncordon", "3"]).await;
    assert_eq!(text.contains(why), file != "off", "{text}");
}

#[tokio::test]
async fn an_operator_ends_what_needs_a_reset_by_vouching_for_the_card() {
    let running = Running::start(DGX, QUICK).await;
    running.rig.listening().await;
    running.rig.node.raise_xid(&card(1), 79).unwrap();
    running.sick(GPU, &[&running.rig.uuid(1)]).await;
    said(&running, &["uncordon", "1"]).await;
    running.complete(LONG).await;
}

#[tokio::test]
async fn cordoning_a_card_takes_its_mig_devices_too() {
    let running = Running::start(MIG, QUICK).await;
    let rig = &running.rig;
    let migs = rig.node.list_migs().unwrap();
    let mine = migs.iter().filter(|mig| mig.gpu == rig.uuid(0)).count();
    assert!(mine > 1);
    said(&running, &["cordon", "0"]).await;
    let out = |kubelet: &sim::kubelet::Kubelet| {
        let rows = kubelet.node_status();
        let out: usize = rows.values().map(|r| r.capacity - r.allocatable).sum();
        out == mine
    };
    let wait = running.kubelet.wait_until("they are out", out, LONG);
    wait.await.unwrap();
    said(&running, &["uncordon", "0"]).await;
    running.complete(LONG).await;
}

#[tokio::test]
async fn what_is_made_on_a_cordoned_card_is_cordoned_and_over_a_restart() {
    let mut running = Running::start(MIG, QUICK).await;
    let uncut = running.rig.uuid(6);
    said(&running, &["cordon", &uncut, "--reason", "a new fan"]).await;
    let made = running.rig.node.add_mig(&card(6), "1g.10gb").unwrap();
    let out = |seen: &api::DevicePage| {
        let entry = seen.find_listed(&made[0]);
        entry.is_some_and(|entry| entry.verdict.state == State::Maintenance)
    };
    running.agent.shows("it is in maintenance", out).await;
    let never = |running: &Running| {
        let lists = running.kubelet.device_lists("nvidia.com/mig-1g.10gb");
        let healthy =
            |list: &sim::kubelet::DeviceList| list.devices.iter().any(|d| d.health == "Healthy");
        assert!(!lists.iter().any(healthy), "{lists:?}");
    };
    never(&running);
    running.agent.stop().await;
    running.agent = Agent::start(&running.rig, "ostler");
    running.agent.shows("it still is", out).await;
    never(&running);
    said(&running, &["uncordon", &uncut]).await;
    running.complete(LONG).await;
}

#[tokio::test]
async fn a_released_card_is_held_by_nobody_and_the_others_are_looked_at() {
    let running = Running::start(DGX, QUICK).await;
    let rig = &running.rig;
    let holders = || {
        let holders = rig.node.holders().unwrap();
        let open: Vec<usize> = holders.iter().map(|card| card.pids.len()).collect();
        open
    };
    eventually("a probe holds the cards", || {
        holders().iter().all(|n| *n > 0)
    })
    .await;
    let text = said(&running, &["release", "4", "--for", "10m"]).await;
    assert!(text.contains("every driver handle is closed"), "{text}");
    assert_eq!(holders()[4], 0);
    running.sick(GPU, &[&rig.uuid(4)]).await;
    eventually("the others are looked at", || {
        let open = holders();
        open[4] == 0 && open.iter().filter(|n| **n > 0).count() == 7
    })
    .await;
    let again = complaint(&running, &["resume", "5"]).await;
    assert!(again.contains("is not released"), "{again}");
    said(&running, &["resume", "4"]).await;
    running.complete(LONG).await;
    eventually("it is looked at again", || holders()[4] > 0).await;
}

#[tokio::test]
async fn an_xid_ends_with_a_reset_while_the_card_is_released() {
    let running = Running::start(DGX, QUICK).await;
    running.rig.listening().await;
    running.rig.node.raise_xid(&card(5), 48).unwrap();
    running.sick(GPU, &[&running.rig.uuid(5)]).await;
    said(&running, &["release", "5"]).await;
    let node = running.rig.node.clone();
    let reset = move || node.reset_cards(&card(5), std::time::Duration::ZERO);
    tokio::task::spawn_blocking(reset).await.unwrap().unwrap();
    said(&running, &["resume", "5"]).await;
    running.complete(LONG).await;
}

#[tokio::test]
async fn all_cards_are_released_and_taken_back_by_themselves() {
    let running = Running::start(DGX, QUICK).await;
    let rig = &running.rig;
    said(&running, &["release", "0", "--for", "5s"]).await;
    said(&running, &["release", "--all", "--for", "5s"]).await;
    let holders = rig.node.holders().unwrap();
    assert!(
        holders.iter().all(|card| card.pids.is_empty()),
        "{holders:?}"
    );
    running.kubelet.wait_healthy(GPU, 0, LONG).await.unwrap();
    let one = complaint(&running, &["resume", "0"]).await;
    assert!(one.contains("ostler resume --all"), "{one}");
    running.complete(LONG).await;
}

/// A card that no probe can read after its release must not be healthy.
#[tokio::test]
async fn cards_that_were_released_are_not_healthy_before_a_probe_has_looked_at_them() {
    let config = "probe: {period: 500ms, driverCallLimit: 2s, retryPause: 500ms}\n\
        health: {holdDown: 500ms, passes: 2}\n";
    let running = Running::start(DGX, config).await;
    said(&running, &["release", "--all", "--for", "4s"]).await;
    running.kubelet.wait_healthy(GPU, 0, LONG).await.unwrap();
    let hang = Effect::Hang { millis: None };
    running.rig.node.set_fault("nvmlInit", None, hang).unwrap();
    let before = running.kubelet.device_lists(GPU).len();
    running
        .agent
        .shows("the driver hangs", |seen| {
            let hangs = |cause: &Cause| cause.kind == CauseKind::NotAnswering;
            let mut all = seen.devices.iter();
            all.all(|entry| entry.verdict.causes.iter().any(hangs))
        })
        .await;
    let lists = running.kubelet.device_lists(GPU);
    let healthy =
        |list: &sim::kubelet::DeviceList| list.devices.iter().any(|d| d.health == "Healthy");
    assert!(!lists[before..].iter().any(healthy), "{lists:#?}");
    running.rig.node.clear_faults(None).unwrap();
    running.complete(LONG).await;
}

/// The next agent must make no driver call for the card, not even once.
#[rstest]
#[case::of_this_version(|state| state)]
#[case::of_version_1(|mut state: Value| {
    state["released"] = state["releases"]["nvidia"].take();
    let fields = state.as_object_mut().unwrap();
    fields.retain(|name, _| name != "version" && name != "releases");
    state
})]
#[tokio::test]
async fn a_card_that_is_released_stays_so_over_a_restart(#[case] written: fn(Value) -> Value) {
    let mut running = Running::start(DGX, QUICK).await;
    said(&running, &["release", "2", "--for", "10m"]).await;
    running.sick(GPU, &[&running.rig.uuid(2)]).await;
    let file = running.rig.path("kubelet/ostler-state.json");
    eventually("it is kept", || {
        fs_err::read_to_string(&file).is_ok_and(|text| text.contains("\"releases\""))
    })
    .await;
    running.agent.stop().await;
    let state = serde_json::from_slice(&fs_err::read(&file).unwrap()).unwrap();
    fs_err::write(&file, written(state).to_string()).unwrap();
    running.agent = Agent::start(&running.rig, "ostler");
    running.kubelet.wait_healthy(GPU, 7, LONG).await.unwrap();
    running.sick(GPU, &[&running.rig.uuid(2)]).await;
    let holders = running.rig.node.holders().unwrap();
    assert!(holders[2].pids.is_empty(), "{holders:?}");
    said(&running, &["resume", "2"]).await;
    running.complete(LONG).await;
}

#[tokio::test]
async fn health_tells_the_verdict_its_cause_and_how_it_came_about() {
    let running = Running::start(DGX, QUICK).await;
    let rig = &running.rig;
    let id = rig.uuid(2);
    rig.listening().await;
    rig.node.raise_xid(&card(2), 79).unwrap();
    running.sick(GPU, &[&id]).await;
    let all = said(&running, &["health"]).await;
    let line = all.lines().find(|line| line.contains(&id)).unwrap();
    assert!(
        line.contains("Unhealthy") && line.contains("XID 79"),
        "{all}"
    );
    assert_eq!(all.lines().count(), 9, "{all}");
    let one = said(&running, &["health", "2"]).await;
    assert!(one.starts_with(&format!("{id}: Unhealthy\n")), "{one}");
    assert!(one.contains("ends when"), "{one}");
    assert!(one.contains("Healthy -> Unhealthy: XID 79"), "{one}");
    let json = said(&running, &["health", "2", "-o", "json"]).await;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["devices"][0]["verdict"]["causes"][0]["kind"], "Event");
    assert_eq!(json["history"][0]["to"], "Unhealthy");
    let log = running.agent.logged("a device is not healthy").await;
    let line = log.lines().find(|l| l.contains("a device is not healthy"));
    let line = line.unwrap();
    for part in [
        &id as &str,
        "pci",
        "from",
        "to",
        "cause",
        "evidence",
        "ends_when",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_with_a_remedy() {
    let running = Running::start(DGX, QUICK).await;
    let none = complaint(&running, &["cordon", "99"]).await;
    assert!(none.contains("no device is called `99`"), "{none}");
    assert!(none.contains("ostler devices"), "{none}");
    let many = complaint(&running, &["release", "GPU-"]).await;
    assert!(many.contains("several devices"), "{many}");
    let long = complaint(&running, &["release", "1", "--for", "25h"]).await;
    assert!(long.contains("24h"), "{long}");
    assert!(complaint(&running, &["release"]).await.contains("--all"));
    let words = "why not ".repeat(200);
    let long = complaint(&running, &["cordon", "1", "--reason", &words]).await;
    assert!(long.contains("fewer words"), "{long}");
}
