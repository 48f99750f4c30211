//! `ostler devices`, with and without a running agent.

use std::{path::Path, process::Output};

use insta::{assert_snapshot, with_settings};

use crate::rig::{DGX, GPU, MIG, QUICK, Rig, Running, card, shown, text};

/// Runs `ostler devices` on the node.
async fn devices(rig: &Rig, control: &Path, form: &str) -> Output {
    shown(rig, control, &["devices", "-o", form]).await
}

/// Waits until the agent has a sample of every device, and the driver's files.
async fn sampled(running: &Running) {
    running
        .agent
        .shows("samples and files", |seen| {
            let files = seen.backends.iter().all(|b| b.extras.files.is_some());
            files && seen.devices.iter().all(|entry| entry.telemetry.is_some())
        })
        .await;
}

/// Compares with a snapshot, without the parts that differ from run to run.
macro_rules! assert_page {
    ($name:literal, $page:expr) => {
        with_settings!({filters => vec![
            (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "[time]"),
            (r#"("?generation"?): \d+"#, "$1: [number]"),
            (r#"[^" ]*/node/libnvidia-ml"#, "[node]/libnvidia-ml"),
            (r#"("?instance"?): "?\d+"?"#, "$1: [instance]"),
            (r#"(?s)"files": \{.*?\n {8}\}"#, r#""files": [files]"#),
            (r"(?s)\n    files:\n.*", "\n    files: [files]\n"),
        ]}, { assert_snapshot!($name, $page) });
    };
}

#[tokio::test]
async fn a_running_agent_shows_its_devices_in_a_table() {
    let running = Running::start(DGX, QUICK).await;
    let Running { agent, rig, .. } = &running;
    sampled(&running).await;
    rig.listening().await;
    rig.node.raise_xid(&card(2), 79).unwrap();
    running.sick(GPU, &[&rig.uuid(2)]).await;
    let output = devices(rig, &agent.control, "table").await;
    assert_eq!(text(output.stderr), "");
    assert_page!("agent table", text(output.stdout));
}

#[tokio::test]
async fn partitions_stand_below_their_cards() {
    let running = Running::start(MIG, QUICK).await;
    sampled(&running).await;
    let output = devices(&running.rig, &running.agent.control, "table").await;
    assert_page!("agent table of partitions", text(output.stdout));
}

#[tokio::test]
async fn programs_are_told_the_partitions_that_are_possible_on_a_card() {
    let running = Running::start(MIG, QUICK).await;
    let json = text(
        devices(&running.rig, &running.agent.control, "json")
            .await
            .stdout,
    );
    let snapshot: model::Snapshot = serde_json::from_str(&json).unwrap();
    let (mut cards, mut partitions) = (0, 0);
    for entry in &snapshot.devices {
        let (kind, shapes) = (&entry.device.kind, &entry.device.shapes);
        if let model::Kind::Card { .. } = kind {
            let half = shapes.iter().find(|shape| shape.profile == "3g.20gb");
            let starts = half.unwrap().placements.iter().map(|span| span.start);
            assert!(starts.eq([0, 4]), "{shapes:?}");
            cards += 1;
        } else {
            assert_eq!(*shapes, []);
            partitions += 1;
        }
    }
    assert!(cards > 0 && partitions > 0);
}

#[tokio::test]
async fn a_running_agent_answers_programs_in_json_and_yaml() {
    let running = Running::start("t4", QUICK).await;
    let Running { agent, rig, .. } = &running;
    sampled(&running).await;
    let json = text(devices(rig, &agent.control, "json").await.stdout);
    assert_page!("agent json", json);
    let snapshot: model::Snapshot = serde_json::from_str(&json).unwrap();
    assert_eq!(snapshot.devices.len(), 1);
    let yaml = text(devices(rig, &agent.control, "yaml").await.stdout);
    assert_page!("agent yaml", yaml);
}

#[tokio::test]
async fn without_an_agent_it_looks_itself_and_says_so() {
    let rig = Rig::new(DGX);
    let output = devices(&rig, &rig.path("nobody.sock"), "table").await;
    let remark = text(output.stderr);
    assert!(remark.contains("no agent answers on"), "{remark}");
    assert!(
        remark.contains("nobody.sock; looking at the hardware without it"),
        "{remark}"
    );
    assert_page!("alone table", text(output.stdout));
    let json = text(devices(&rig, &rig.path("nobody.sock"), "json").await.stdout);
    let snapshot: model::Snapshot = serde_json::from_str(&json).unwrap();
    assert_eq!(snapshot.devices.len(), 8);
    let yaml = text(devices(&rig, &rig.path("nobody.sock"), "yaml").await.stdout);
    assert!(yaml.starts_with("generation:"), "{yaml}");
}

#[tokio::test]
async fn without_an_agent_and_a_driver_it_says_what_is_missing() {
    let rig = Rig::new(DGX);
    rig.node.unplug_driver().unwrap();
    let output = devices(&rig, &rig.path("nobody.sock"), "table").await;
    assert_page!("no driver", text(output.stdout));
}
