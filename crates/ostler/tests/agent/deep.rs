//! Deep checks: runs of the user's command, and its end in every case.

use std::path::Path;

use model::CauseKind;
use rustix::process::Signal;
use serde_json::json;
use sim::kubelet::Era;

use crate::{
    process::parent,
    rig::{DGX, LONG, Rig, Running, card, eventually},
};

/// Config with short periods, in which a failed deep check makes a card unhealthy.
fn config(deep: &str, script: &str) -> String {
    format!(
        "probe: {{period: 300ms}}\n\
         health: {{holdDown: 300ms, passes: 1, weights: {{deep: out}}, {deep}, \
         deepCommand: [sh, -c, '{script}']}}\n"
    )
}

/// Script that starts a process in a session of its own, records its pid in `note`, and never ends.
fn endless(note: &Path) -> String {
    let file = note.display();
    format!(
        "(setsid sh -c \"echo \\$\\$ >{file}.part; mv {file}.part {file}; exec sleep 1000\" &); \
         exec sleep 1000"
    )
}

/// Waits for the pid that a script records, and returns it.
async fn begun(note: &Path) -> u32 {
    eventually("a deep check runs", || note.exists()).await;
    let pid = fs_err::read_to_string(note).unwrap();
    pid.trim().parse().unwrap()
}

#[tokio::test]
async fn the_command_runs_on_idle_cards_only_while_the_agent_goes_on_looking() {
    let rig = Rig::new(DGX);
    rig.node.set_sensor(&card(1), "utilization", 50).unwrap();
    let (go, checked) = (rig.path("go"), rig.path("checked"));
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.05; done; \
         echo $OSTLER_DEVICE $OSTLER_DEVICE_PCI $OSTLER_DEVICE_INDEX >>{}; \
         [ $OSTLER_DEVICE != {} ]",
        go.display(),
        checked.display(),
        rig.uuid(2)
    );
    let running = Running::on(rig, &config("deep: 500ms", &script)).await;
    let Running { agent, rig, .. } = &running;
    agent.logged("a deep check begins").await;
    // Reports go on while the command runs.
    rig.node.lose_cards(&card(7)).unwrap();
    running.lost(&rig.uuid(7)).await;
    fs_err::write(&go, "").unwrap();
    let (sick, gpus) = (rig.uuid(2), rig.node.list_gpus().unwrap());
    let failed = agent.shows("the command fails on a card", |seen| {
        let mut causes = seen.find_listed(&sick).unwrap().verdict.causes.iter();
        causes.any(|cause| cause.kind == CauseKind::Deep)
    });
    failed.await;
    let lines = || fs_err::read_to_string(&checked).unwrap_or_default();
    eventually("a round is over", || lines().contains(&rig.uuid(6))).await;
    eventually("the next one too", || {
        lines().matches(&rig.uuid(0)).count() > 1
    })
    .await;
    let first = format!("{} {} 0\n", gpus[0].uuid, gpus[0].pci);
    assert!(lines().contains(&first), "{}", lines());
    assert!(!lines().contains(&rig.uuid(1)), "it is busy");
    let log = agent.logged("no deep check").await;
    assert!(log.contains("its engines are busy to 50 %"), "{log}");
    let lost = lines().matches(&rig.uuid(7)).count();
    assert_eq!(lost, 0, "it was lost before its turn");
}

#[tokio::test]
async fn an_agent_that_ends_leaves_no_command_behind() {
    let rig = Rig::new(DGX);
    let note = rig.path("pid");
    let mut agent = rig.agent(&config("deep: 500ms", &endless(&note)));
    let pid = begun(&note).await;
    agent.stop().await;
    eventually("the command is gone", || parent(pid).is_none()).await;
}

#[tokio::test]
async fn a_card_that_is_released_has_no_command_on_it_any_more() {
    let rig = Rig::new(DGX);
    let note = rig.path("pid");
    let kubelet = rig.kubelet(Era::V1_36).await;
    let agent = rig.agent(&config("deep: 2s", &endless(&note)));
    let running = Running {
        agent,
        kubelet,
        rig,
    };
    let pid = begun(&note).await;
    // Deep checks take the idle cards in the order of their ids: the command runs on the first.
    let mut ids: Vec<String> = (0..8).map(|index| running.rig.uuid(index)).collect();
    ids.sort();
    let device = json!({"device": ids[0]});
    let control = &running.agent.control;
    let sent = web::client::post(control, "/v1/release", &device).await;
    sent.unwrap();
    assert_eq!(
        parent(pid),
        None,
        "it is answered when nothing has the card open"
    );
    let log = running.agent.logged("ended because the card was released");
    log.await;
    let next = || fs_err::read_to_string(&note).unwrap_or_default();
    eventually("the next card is checked", || {
        next().trim().parse().is_ok_and(|next: u32| next != pid)
    })
    .await;
}

#[tokio::test]
async fn a_probe_that_is_killed_costs_no_command_and_a_new_command_no_probe() {
    let rig = Rig::new(DGX);
    let (note, other) = (rig.path("pid"), rig.path("other"));
    let running = Running::on(rig, &config("deep: 500ms", &endless(&note))).await;
    let pid = begun(&note).await;
    let before = running.agent.probes();
    running.agent.kill_probes();
    eventually("another probe runs", || {
        let now = running.agent.probes();
        now.len() == 1 && now != before
    })
    .await;
    running.complete(LONG).await;
    assert!(parent(pid).is_some(), "the command goes on");
    let before = running.agent.probes();
    running.rewrite(&config("deep: 400ms", &endless(&other)));
    begun(&other).await;
    eventually("the old command is gone", || parent(pid).is_none()).await;
    assert_eq!(running.agent.probes(), before);
}

#[tokio::test]
async fn an_agent_that_is_killed_leaves_no_command_behind() {
    let rig = Rig::new(DGX);
    let note = rig.path("pid");
    let mut agent = rig.agent(&config("deep: 500ms", &endless(&note)));
    let pid = begun(&note).await;
    agent.signal(Signal::KILL);
    agent.ended().await;
    eventually("the command is gone", || parent(pid).is_none()).await;
}
