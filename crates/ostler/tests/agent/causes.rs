//! Every kind of cause: a device fails, is unhealthy, is repaired and is healthy again, while the
//! agent runs on.

mod circle;
mod sweep;
mod table;

use std::{collections::BTreeSet, time::Duration};

use model::{CauseKind, State};
use sim::{NewGpu, kubelet::Era};

use crate::rig::{DGX, GPU, LONG, QUICK, Rig, Running, card, took, unhealthy};

/// Config with short periods of check-ups, in which each finding makes a card unhealthy.
const STRICT: &str = "
probe: {period: 300ms}
health:
  working: 300ms
  performing: 300ms
  trend: 300ms
  holdDown: 300ms
  passes: 1
  weights: {performing: out, trend: out, deep: out}
";

#[tokio::test]
async fn a_warning_takes_no_card_out_until_its_weight_says_so() {
    let config = |weights: &str| {
        format!("probe: {{period: 300ms}}\nhealth: {{performing: 300ms, weights: {{{weights}}}}}\n")
    };
    let running = Running::start(DGX, &config("performing: warn")).await;
    let id = running.rig.uuid(1);
    running
        .rig
        .node
        .set_sensor(&card(1), "pcie-width", 4)
        .unwrap();
    let warned = running.agent.shows("a warning", |seen| {
        let verdict = &seen.find_listed(&id).unwrap().verdict;
        verdict.warnings.iter().any(|c| c.kind == CauseKind::Pcie)
    });
    let seen = warned.await;
    assert_eq!(seen.find_listed(&id).unwrap().verdict.state, State::Healthy);
    let probes = running.agent.probes();
    running.rewrite(&config("performing: out"));
    running.sick(GPU, &[&id]).await;
    running.rewrite(&config("performing: off"));
    running.complete(LONG).await;
    running.rewrite(&config("performing: off, causes: {Pcie: out}"));
    running.sick(GPU, &[&id]).await;
    assert_eq!(
        running.agent.probes(),
        probes,
        "no probe was started for it"
    );
}

/// XIDs by NVIDIA's catalogue of XID errors; true if the card stays healthy. The list shares nothing
/// with the product's table.
const XIDS: [(u64, bool); 25] = [
    // Errors of programs, repairs that succeeded, and errors without consequence.
    (8, true),
    (13, true),
    (31, true),
    (32, true),
    (39, true),
    (43, true),
    (45, true),
    (63, true),
    (68, true),
    (69, true),
    (92, true),
    (94, true),
    // The card needs a reset.
    (46, false),
    (48, false),
    (62, false),
    (64, false),
    (74, false),
    (79, false),
    (95, false),
    (109, false),
    (110, false),
    (119, false),
    (120, false),
    (140, false),
    // An XID that is in no catalogue.
    (4242, false),
];

#[tokio::test]
async fn twenty_five_xids_do_what_nvidias_catalogue_says() {
    let rig = Rig::new(DGX);
    for _ in 8..XIDS.len() {
        rig.node.add_gpu(&NewGpu::default()).unwrap();
    }
    let running = Running::on(rig, QUICK).await;
    let rig = &running.rig;
    rig.listening().await;
    let mut out = BTreeSet::new();
    for (index, (xid, healthy)) in XIDS.into_iter().enumerate() {
        rig.node.raise_xid(&card(index), xid).unwrap();
        if !healthy {
            out.insert(rig.uuid(index));
        }
    }
    // Events come in order, and the last one has an effect: all have arrived then.
    let out: Vec<&str> = out.iter().map(String::as_str).collect();
    running.sick(GPU, &out).await;
    // An error of a program is a warning.
    let id = rig.uuid(1);
    let seen = running.agent.devices().await.unwrap();
    let warnings = &seen.find_listed(&id).unwrap().verdict.warnings;
    assert!(warnings[0].evidence.contains("XID 13"), "{warnings:?}");
}

#[tokio::test]
async fn an_xid_on_a_card_with_ten_replicas_marks_all_ten() {
    let config = format!(
        "{QUICK}pools: [{{name: a, resource: nvidia.com/gpu, sharing: {{replicas: 10}}}}]\n"
    );
    let rig = Rig::new("t4");
    let kubelet = rig.kubelet(Era::V1_37).await;
    let agent = rig.agent(&config);
    kubelet.wait_healthy(GPU, 10, LONG).await.unwrap();
    rig.listening().await;
    rig.node.raise_xid(&card(0), 79).unwrap();
    kubelet.wait_healthy(GPU, 0, LONG).await.unwrap();
    assert_eq!(unhealthy(&kubelet.resource_devices(GPU)).len(), 10);
    rig.counted(0).await;
    let node = rig.node.clone();
    let reset = move || node.reset_cards(&card(0), Duration::from_secs(2));
    tokio::task::spawn_blocking(reset).await.unwrap().unwrap();
    kubelet.wait_healthy(GPU, 10, LONG).await.unwrap();
    drop(agent);
}

#[tokio::test]
async fn xids_can_be_given_another_meaning_while_the_agent_runs() {
    let running = Running::start(DGX, QUICK).await;
    let rig = &running.rig;
    rig.listening().await;
    rig.node.raise_xid(&card(1), 94).unwrap();
    rig.node.raise_xid(&card(2), 79).unwrap();
    running.sick(GPU, &[&rig.uuid(2)]).await;
    let other = "probe: {period: 500ms}\n\
                 backends: {nvidia: {xids: {actions: {94: drain, 79: ignore}}}}\n\
                 health: {holdDown: 500ms, passes: 2}\n";
    running.rewrite(other);
    running.sick(GPU, &[&rig.uuid(1)]).await;
}

/// The times are printed and not checked: the time limit is for slow machines.
#[tokio::test]
async fn a_lost_card_is_found_by_looking_alone_and_by_its_event() {
    let config = "probe: {period: 2s}\nhealth: {holdDown: 500ms, passes: 1}\n";
    let running = Running::start(DGX, config).await;
    let rig = &running.rig;
    rig.listening().await;
    let since = tokio::time::Instant::now();
    rig.node.lose_cards(&card(6)).unwrap();
    running.sick(GPU, &[&rig.uuid(6)]).await;
    took("a lost card found by looking every 2 s", since);
    rig.node.restore_cards(&card(6)).unwrap();
    running.complete(LONG).await;
    let since = tokio::time::Instant::now();
    rig.node.raise_xid(&card(6), 79).unwrap();
    running.sick(GPU, &[&rig.uuid(6)]).await;
    took("a lost card found by its event", since);
}
