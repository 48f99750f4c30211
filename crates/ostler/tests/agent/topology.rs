//! `ostler topology` in all its formats, with and without a running agent.

use std::{path::Path, process::Output};

use insta::assert_snapshot;
use serde_json::Value;

use crate::rig::{QUICK, Rig, Running, shown, text};

/// Profile of a node whose pairs of cards have different numbers of NVLinks.
const VOLTA: &str = "dgx1-v100";

/// Every format of the output.
const FORMS: [&str; 4] = ["table", "json", "dot", "svg"];

async fn topology(rig: &Rig, control: &Path, form: &str) -> Output {
    shown(rig, control, &["topology", "-o", form]).await
}

/// Waits until the agent knows the links between the cards.
async fn linked(running: &Running) {
    let known = |seen: &api::DevicePage| {
        let mut cards = seen.devices.iter();
        cards.all(|entry| entry.device.links.len() == 7)
    };
    running.agent.shows("links", known).await;
}

/// The JSON without the values that only an agent knows.
fn facts(json: &str) -> Value {
    let mut data: Value = serde_json::from_str(json).unwrap();
    for card in data["cards"].as_array_mut().unwrap() {
        card["health"].take();
    }
    data
}

/// Entry of a pair of cards, by their indices.
fn pair<'a>(data: &'a Value, rig: &Rig, a: usize, b: usize) -> &'a Value {
    let cards = serde_json::json!([rig.uuid(a), rig.uuid(b)]);
    let mut pairs = data["pairs"].as_array().unwrap().iter();
    pairs.find(|pair| pair["cards"] == cards).unwrap()
}

#[tokio::test]
async fn a_running_agent_is_asked_and_without_one_the_hardware_with_the_same_answers() {
    let running = Running::start(VOLTA, QUICK).await;
    linked(&running).await;
    let Running { agent, rig, .. } = &running;
    for form in FORMS {
        let asked = topology(rig, &agent.control, form).await;
        assert_eq!(text(asked.stderr), "", "{form}");
        let alone = topology(rig, &rig.path("nobody.sock"), form).await;
        let remark = text(alone.stderr);
        assert!(remark.contains("no agent answers on"), "{remark}");
        let (asked, alone) = (text(asked.stdout), text(alone.stdout));
        match form {
            "json" => assert_eq!(facts(&asked), facts(&alone)),
            _ => assert_eq!(asked, alone, "{form}"),
        }
    }
}

#[tokio::test]
async fn the_matrix_and_the_graph_are_those_of_the_machine() {
    let rig = Rig::new(VOLTA);
    let alone = rig.path("nobody.sock");
    assert_snapshot!(
        "topology table",
        text(topology(&rig, &alone, "table").await.stdout)
    );
    let graph = text(topology(&rig, &alone, "dot").await.stdout);
    assert_snapshot!("topology dot", graph);
}

#[tokio::test]
async fn programs_get_every_card_and_every_pair_with_its_score() {
    let rig = Rig::new(VOLTA);
    let output = topology(&rig, &rig.path("nobody.sock"), "json").await;
    let data: Value = serde_json::from_str(&text(output.stdout)).unwrap();
    let numa: Vec<_> = data["cards"]
        .as_array()
        .unwrap()
        .iter()
        .map(|card| &card["numa"])
        .collect();
    assert_eq!(numa, [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(data["pairs"].as_array().unwrap().len(), 28);
    // Two NVLinks and a host bridge; one NVLink and a PCIe switch; no closer path than the system.
    for (a, b, lanes, score) in [(0, 3, 2, 230), (0, 1, 1, 150), (0, 7, 0, 10)] {
        let pair = pair(&data, &rig, a, b);
        assert_eq!(
            (&pair["lanes"], &pair["score"]),
            (&lanes.into(), &score.into()),
            "{pair}"
        );
    }
}

#[tokio::test]
async fn the_picture_names_every_card_once_and_is_whole() {
    let rig = Rig::new(VOLTA);
    let output = topology(&rig, &rig.path("nobody.sock"), "svg").await;
    let picture = text(output.stdout);
    assert!(picture.starts_with("<svg ") && picture.trim_end().ends_with("</svg>"));
    assert_eq!(picture.matches("class=\"card\"").count(), 8);
    for card in 0..8 {
        let name = format!(">GPU {card}<");
        assert_eq!(picture.matches(&name).count(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_node_without_cards_says_so() {
    let rig = Rig::new("t4");
    rig.node.unplug_driver().unwrap();
    let output = topology(&rig, &rig.path("nobody.sock"), "table").await;
    assert_eq!(text(output.stdout), "no cards\n");
}
