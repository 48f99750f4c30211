//! Ids of devices are stable: the kubelet keeps them in its checkpoint.

use std::collections::BTreeMap;

use sim::kubelet::Era;

use crate::rig::{DGX, GPU, LONG, MIG, QUICK, Running, card};

/// Ids of each resource with devices.
fn ids(running: &Running) -> BTreeMap<String, Vec<String>> {
    let kubelet = &running.kubelet;
    let resources = kubelet.node_status().into_keys();
    let rows = resources.map(|name| {
        let ids = kubelet.resource_devices(&name).into_keys().collect();
        (name, ids)
    });
    rows.collect()
}

#[rstest::rstest]
#[case::whole(DGX)]
#[case::partitioned(MIG)]
#[tokio::test]
async fn ids_are_the_same_after_a_restart_of_the_agent(#[case] profile: &str) {
    let mut running = Running::start(profile, QUICK).await;
    let before = ids(&running);
    running.agent.stop().await;
    running.agent = running.rig.agent(QUICK);
    let registered =
        |kubelet: &sim::kubelet::Kubelet| kubelet.registrations().len() == 2 * before.len();
    let wanted = "each resource is registered again";
    let waited = running.kubelet.wait_until(wanted, registered, LONG).await;
    waited.unwrap();
    running.complete(LONG).await;
    assert_eq!(ids(&running), before);
}

#[tokio::test]
async fn ids_are_the_same_after_a_reboot_that_numbers_the_cards_anew() {
    let mut running = Running::start(DGX, QUICK).await;
    let gone = running.rig.uuid(0);
    let mut before = ids(&running);
    running.agent.stop().await;
    running.kubelet.stop_kubelet().await;
    // Without the first card, every other card has another index.
    running.rig.node.remove_gpu(&card(0)).unwrap();
    running.kubelet = running.rig.kubelet(Era::V1_37).await;
    running.agent = running.rig.agent(QUICK);
    running.complete(LONG).await;
    before
        .values_mut()
        .for_each(|ids| ids.retain(|id| *id != gone));
    assert_eq!(ids(&running), before);
}

#[tokio::test]
async fn a_pod_keeps_its_cards_over_a_restart_of_the_agent() {
    let mut running = Running::start(DGX, QUICK).await;
    let pod = sim::kubelet::Pod::new("default", "guest").with_container("main", [(GPU, 8)]);
    let admitted = running.kubelet.admit_pod(pod).await.unwrap();
    running.agent.stop().await;
    running.agent = running.rig.agent(QUICK);
    running.complete(LONG).await;
    running.kubelet.readmit_pod(&admitted.pod).await.unwrap();
    let again = running.kubelet.restart_container(&admitted.pod, "main");
    let again = again.await.unwrap();
    assert_eq!(again, admitted.containers["main"]);
}
