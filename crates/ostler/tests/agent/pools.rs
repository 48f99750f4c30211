//! Pools: cards of one node under different resource names, changed while pods run.

use std::collections::BTreeSet;

use serde_json::Value;
use sim::kubelet::{Era, Pod};
use tokio::time::Instant;

use crate::rig::{GPU, LONG, Rig, Running, card, took};

/// Profile of a server with four cards.
const FOUR: &str = "l40s-pcie";

/// Resource of the shared units of one card.
const SLICE: &str = "nvidia.com/slice";
/// Resource of whole cards.
const WHOLE: &str = "nvidia.com/whole";

/// Config with one card in `replicas` units, and three whole cards.
fn two_pools(replicas: u32) -> String {
    format!(
        "pools:
  - {{name: a, select: {{index: 0}}, resource: {SLICE}, sharing: {{replicas: {replicas}}}}}
  - {{name: b, resource: {WHOLE}}}
"
    )
}

async fn start(config: &str) -> Running {
    let rig = Rig::new(FOUR);
    let kubelet = rig.kubelet(Era::V1_37).await;
    let agent = rig.agent(config);
    Running {
        agent,
        kubelet,
        rig,
    }
}

/// Number of registrations and of lists of a resource.
fn heard(running: &Running, resource: &str) -> (usize, usize) {
    let registrations = running.kubelet.registrations();
    let its = registrations.iter().filter(|r| r.resource == resource);
    (its.count(), running.kubelet.device_lists(resource).len())
}

/// Waits until a device is not offered for this kind of reason, and returns the reason.
async fn aside(running: &Running, device: &str, kind: &str) -> String {
    let find = |status: &Value| {
        let all = status["aside"].as_array().unwrap();
        let mut its = all.iter().filter(|aside| aside["device"] == device);
        its.find(|aside| aside["kind"] == kind).cloned()
    };
    let what = format!("{device} is {kind}");
    let status = running.agent.says(&what, |s| find(s).is_some()).await;
    find(&status).unwrap()["reason"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_change_of_one_pool_leaves_the_other_ones_stream_alone() {
    let running = start(&two_pools(10)).await;
    running.offers(&[(SLICE, 10), (WHOLE, 3)]).await;
    let (first, whole) = (running.rig.uuid(0), running.ids(WHOLE));
    for unit in running.ids(SLICE) {
        assert!(unit.starts_with(&format!("{first}::")), "{unit}");
    }
    assert!(!whole.contains(&first), "{whole:?}");
    let pod = Pod::new("default", "resident").with_container("main", [(WHOLE, 2), (SLICE, 1)]);
    let admitted = running.kubelet.admit_pod(pod).await.unwrap();

    for replicas in [4, 20, 10] {
        running.rewrite(&two_pools(replicas));
        let count = usize::try_from(replicas).unwrap();
        running.offers(&[(SLICE, count), (WHOLE, 3)]).await;
    }
    assert_eq!(heard(&running, WHOLE), (1, 1));
    assert_eq!(heard(&running, SLICE), (1, 4));

    // The stream of the resource that the reload did not change still delivers.
    running.rig.node.lose_cards(&card(3)).unwrap();
    running.sick(WHOLE, &[&running.rig.uuid(3)]).await;
    assert_eq!(heard(&running, WHOLE), (1, 2));
    let again = running.kubelet.restart_container(&admitted.pod, "main");
    assert_eq!(again.await.unwrap(), admitted.containers["main"]);
    assert_eq!(running.breaches(), [""; 0]);
}

#[tokio::test]
async fn a_card_is_excluded_and_let_in_again_while_the_agent_runs() {
    let running = start("").await;
    running.offers(&[(GPU, 4)]).await;
    let (second, pci) = (
        running.rig.uuid(1),
        running.rig.node.list_gpus().unwrap()[1].pci,
    );
    let begun = Instant::now();
    running.rewrite(&format!("exclude: [{{pci: \"{pci}\"}}]\n"));
    running.offers(&[(GPU, 3)]).await;
    took("a card is excluded", begun);
    assert!(!running.ids(GPU).contains(&second));
    let reason = aside(&running, &second, "excluded").await;
    assert!(reason.contains(&pci.to_string()), "{reason}");

    let begun = Instant::now();
    running.rewrite("");
    running.offers(&[(GPU, 4)]).await;
    took("a card is let in again", begun);
    let status = running.agent.status().await.unwrap();
    assert_eq!(status["aside"].as_array().unwrap().len(), 0);
    assert_eq!(heard(&running, GPU), (1, 3));
}

#[tokio::test]
async fn a_card_is_reserved_and_given_back_while_the_agent_runs() {
    let config = |reserved: &str| {
        format!("pools:\n  - name: all\n    resource: {GPU}\n    reserved: {reserved}\n")
    };
    let running = start(&config("[]")).await;
    running.offers(&[(GPU, 4)]).await;
    let third = running.rig.uuid(2);
    let begun = Instant::now();
    running.rewrite(&config(&format!("[{{uuid: {third}}}]")));
    running.offers(&[(GPU, 3)]).await;
    took("a card is reserved", begun);
    let reason = aside(&running, &third, "reserved").await;
    assert!(reason.contains(&third), "{reason}");
    let begun = Instant::now();
    running.rewrite(&config("[]"));
    running.offers(&[(GPU, 4)]).await;
    took("a card is given back", begun);
}

#[tokio::test]
async fn a_card_that_no_pool_takes_is_named_with_the_reason() {
    let config = "pools:\n  - {name: few, select: {index: [0, 1]}, resource: nvidia.com/gpu}\n  \
                  - {name: none, select: {model: \"*H100*\"}, resource: nvidia.com/h100}\n";
    let running = start(config).await;
    running.offers(&[(GPU, 2)]).await;
    for index in [2, 3] {
        aside(&running, &running.rig.uuid(index), "no-pool").await;
    }
    let status = running.agent.status().await.unwrap();
    let notes = status["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note["pool"] == "none"), "{notes:?}");
}

#[tokio::test]
async fn a_renamed_resource_leaves_an_empty_list_under_its_old_name_and_goes() {
    let config = |name: &str| format!("pools: [{{name: all, resource: {name}}}]\n");
    let running = start(&config(GPU)).await;
    running.offers(&[(GPU, 4)]).await;
    let ids = running.ids(GPU);
    running.rewrite(&config(WHOLE));
    running.offers(&[(WHOLE, 4)]).await;
    assert_eq!(running.ids(WHOLE), ids);
    let last = running.kubelet.device_lists(GPU).pop().unwrap();
    assert_eq!(last.devices, []);
    assert_eq!(running.kubelet.node_status()[GPU].capacity, 0);
    let named = |status: &Value| -> BTreeSet<String> {
        let rows = status["resources"].as_array().unwrap().iter();
        rows.map(|row| row["resource"].as_str().unwrap().to_owned())
            .collect()
    };
    let begun = Instant::now();
    let only = BTreeSet::from([WHOLE.to_owned()]);
    running
        .agent
        .says("only the new name", |status| named(status) == only)
        .await;
    took("the old name goes", begun);

    // The old resource name may come back.
    running.rewrite(&config(GPU));
    running.offers(&[(GPU, 4)]).await;
    running.kubelet.wait_healthy(GPU, 4, LONG).await.unwrap();
    assert_eq!(running.breaches(), [""; 0]);
}
