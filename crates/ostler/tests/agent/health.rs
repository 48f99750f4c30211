//! Health of cards, as the kubelet's lists and the agent's pages show it.

use model::{CauseKind, State};
use sim::{DeviceTarget, NewGpu, kubelet::Kubelet};

use crate::rig::{DGX, GPU, LONG, MIG, QUICK, Running, card, unhealthy};

const SMALL: &str = "nvidia.com/mig-1g.5gb";

/// Checks that every list at the kubelet was sorted.
fn assert_sorted(kubelet: &Kubelet, resource: &str) {
    let lists = kubelet.device_lists(resource);
    assert!(!lists.is_empty());
    for list in lists {
        let ids: Vec<&str> = list.devices.iter().map(|d| d.id.as_str()).collect();
        assert!(ids.is_sorted(), "{ids:?}");
    }
}

#[tokio::test]
async fn xid_79_takes_a_card_out_with_its_cause_until_it_was_away() {
    let running = Running::start(DGX, QUICK).await;
    let Running { agent, rig, .. } = &running;
    let id = rig.uuid(2);
    rig.listening().await;
    rig.node.raise_xid(&card(2), 79).unwrap();
    running.sick(GPU, &[&id]).await;
    let seen = agent.devices().await.unwrap();
    let verdict = &seen.find_listed(&id).unwrap().verdict;
    assert_eq!(verdict.state, State::Unhealthy);
    assert_eq!(verdict.causes[0].kind, CauseKind::Event);
    assert_eq!(
        verdict.join_evidence(),
        "XID 79 (GPU has fallen off the bus)"
    );
    agent.logged("XID 79 (GPU has fallen off the bus)").await;

    rig.node.lose_cards(&card(2)).unwrap();
    running.lost(&id).await;
    rig.node.restore_cards(&card(2)).unwrap();
    running.complete(LONG).await;
    assert_sorted(&running.kubelet, GPU);
    assert_eq!(running.breaches(), [""; 0]);
}

#[tokio::test]
async fn a_lost_card_that_comes_back_is_healthy_again() {
    let running = Running::start(DGX, QUICK).await;
    let Running { agent, rig, .. } = &running;
    let id = rig.uuid(5);
    rig.node.lose_cards(&card(5)).unwrap();
    running.sick(GPU, &[&id]).await;
    let seen = agent.devices().await.unwrap();
    let reason = seen.find_listed(&id).unwrap().verdict.join_evidence();
    assert!(reason.contains("GPU_IS_LOST"), "{reason}");
    rig.node.restore_cards(&card(5)).unwrap();
    running.complete(LONG).await;
    agent.logged("the device is healthy again").await;
}

#[tokio::test]
async fn a_card_that_comes_back_need_not_wait_for_the_next_look() {
    let config = "probe: {period: 10m}\nhealth: {holdDown: 500ms, passes: 2}\n";
    let running = Running::start(DGX, config).await;
    let rig = &running.rig;
    rig.listening().await;
    rig.node.lose_cards(&card(5)).unwrap();
    // An event causes a report at once.
    rig.node.raise_xid(&card(5), 79).unwrap();
    running.lost(&rig.uuid(5)).await;
    rig.node.restore_cards(&card(5)).unwrap();
    running.complete(LONG).await;
}

#[tokio::test]
async fn an_xid_of_a_faulty_program_changes_nothing() {
    let running = Running::start(DGX, QUICK).await;
    let Running { agent, rig, .. } = &running;
    rig.listening().await;
    rig.node.raise_xid(&card(2), 13).unwrap();
    rig.node.raise_xid(&card(6), 79).unwrap();
    // Events come in order: when the second has its effect, the first has been handled.
    running.sick(GPU, &[&rig.uuid(6)]).await;
    let seen = agent.devices().await.unwrap();
    let verdict = &seen.find_listed(&rig.uuid(2)).unwrap().verdict;
    assert_eq!(verdict.state, State::Healthy);
    // An event without effect is logged too.
    agent.logged("code=xid:13").await;
}

#[tokio::test]
async fn an_xid_on_a_partition_touches_no_other() {
    let running = Running::start(MIG, QUICK).await;
    let Running { agent, rig, .. } = &running;
    rig.listening().await;
    let parts = rig.node.list_migs().unwrap();
    let part = parts.iter().find(|part| part.index == "0:2").unwrap();
    assert_eq!(part.profile, "1g.5gb");
    rig.node.raise_xid(&DeviceTarget::Mig(0, 2), 79).unwrap();
    running.sick(SMALL, &[&part.uuid]).await;
    let seen = agent.devices().await.unwrap();
    let sick = seen
        .devices
        .iter()
        .filter(|entry| entry.verdict.state != State::Healthy);
    let sick: Vec<&str> = sick.map(|entry| entry.device.id.as_str()).collect();
    assert_eq!(sick, [part.uuid.as_str()]);
}

#[tokio::test]
async fn an_xid_on_a_partitioned_card_touches_all_its_partitions() {
    let running = Running::start(MIG, QUICK).await;
    let rig = &running.rig;
    rig.listening().await;
    rig.node.raise_xid(&card(1), 79).unwrap();
    let parts = rig.node.list_migs().unwrap();
    let of_card = parts.iter().filter(|part| part.gpu == rig.uuid(1));
    for part in of_card.clone() {
        let resource = format!("nvidia.com/mig-{}", part.profile);
        let found = running.kubelet.wait_devices(
            &resource,
            |devices| unhealthy(devices).contains(&part.uuid.as_str()),
            LONG,
        );
        found.await.unwrap();
    }
    let node = running.kubelet.node_status();
    let out: usize = node.values().map(|r| r.capacity - r.allocatable).sum();
    assert_eq!(out, of_card.count());
}

#[tokio::test]
async fn a_partition_appears_and_disappears_without_a_restart() {
    let running = Running::start(MIG, QUICK).await;
    let Running { kubelet, rig, .. } = &running;
    let before: Vec<String> = kubelet.resource_devices(SMALL).into_keys().collect();
    let made = rig.node.add_mig(&card(6), "1g.5gb").unwrap().remove(0);
    let has = |devices: &sim::kubelet::PluginDevices| devices.contains_key(&made);
    let with = kubelet.wait_devices(SMALL, has, LONG).await.unwrap();
    assert_eq!(with.len(), before.len() + 1);
    rig.node
        .remove_mig(&DeviceTarget::Uuid(made.clone()))
        .unwrap();
    let without = kubelet
        .wait_devices(SMALL, |devices| !has(devices), LONG)
        .await;
    let without: Vec<String> = without.unwrap().into_keys().collect();
    assert_eq!(without, before);
    assert_sorted(kubelet, SMALL);
    assert_eq!(running.breaches(), [""; 0]);
}

#[tokio::test]
async fn a_card_appears_and_disappears_without_a_restart() {
    let config = "probe: {period: 500ms}\nhealth: {goneGrace: 3s, holdDown: 500ms, passes: 2}\n";
    let running = Running::start(DGX, config).await;
    let Running { kubelet, rig, .. } = &running;
    let added = rig.node.add_gpu(&NewGpu::default()).unwrap();
    kubelet.wait_healthy(GPU, 9, LONG).await.unwrap();
    assert!(kubelet.resource_devices(GPU).contains_key(&added.uuid));

    let target = DeviceTarget::Uuid(added.uuid.clone());
    rig.node.remove_gpu(&target).unwrap();
    running.sick(GPU, &[&added.uuid]).await;
    let gone = |devices: &sim::kubelet::PluginDevices| !devices.contains_key(&added.uuid);
    let left = kubelet.wait_devices(GPU, gone, LONG).await.unwrap();
    assert_eq!(left.len(), 8);
    assert_eq!(kubelet.registrations().len(), 1);
    assert_sorted(kubelet, GPU);
    assert_eq!(running.breaches(), [""; 0]);
}

#[tokio::test]
async fn a_card_that_is_gone_stays_listed_as_unhealthy() {
    let running = Running::start(DGX, QUICK).await;
    let Running { kubelet, rig, .. } = &running;
    let id = rig.uuid(7);
    rig.node.remove_gpu(&card(7)).unwrap();
    running.sick(GPU, &[&id]).await;
    running.looks_again(0).await;
    running.looks_again(0).await;
    assert_eq!(kubelet.resource_devices(GPU).len(), 8);
    rig.node.add_gpu(&NewGpu::default()).unwrap();
    running.complete(LONG).await;
}
