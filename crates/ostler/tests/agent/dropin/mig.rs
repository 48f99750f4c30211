//! NVIDIA's MIG strategies on a node whose cards have different layouts: one has MIG mode off, one
//! has MIG mode on and no MIG devices.

use std::collections::BTreeSet;

use super::Plugin;
use crate::rig::{GPU, MIG, Running};

/// Resources of the node with the strategy `mixed`.
pub(super) const MIXED: [(&str, usize); 6] = [
    (GPU, 1),
    ("nvidia.com/mig-1g.5gb", 10),
    ("nvidia.com/mig-2g.10gb", 4),
    ("nvidia.com/mig-3g.20gb", 4),
    ("nvidia.com/mig-4g.20gb", 1),
    ("nvidia.com/mig-7g.40gb", 1),
];

/// UUIDs of the MIG devices of a profile.
fn cut(running: &Running, profile: &str) -> BTreeSet<String> {
    let migs = running.rig.node.list_migs().unwrap().into_iter();
    let of = migs.filter(|mig| mig.profile == profile);
    of.map(|mig| mig.uuid).collect()
}

/// Reasons of one kind that the status page gives for devices that are not offered.
async fn asides(running: &Running, kind: &str) -> Vec<String> {
    let status = running.agent.status().await.unwrap();
    let all = status["aside"].as_array().unwrap();
    let of = all.iter().filter(|aside| aside["kind"] == kind);
    of.map(|aside| aside["reason"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn none_offers_every_card_whole() {
    let running = Plugin::variable(&[("MIG_STRATEGY", "none")]).on(MIG).await;
    running.offers(&[(GPU, 8)]).await;
    let gpus = running.rig.node.list_gpus().unwrap().into_iter();
    let cards: BTreeSet<String> = gpus.map(|gpu| gpu.uuid).collect();
    assert_eq!(running.ids(GPU), cards);
    assert_eq!(asides(&running, "whole").await.len(), 20);
}

#[tokio::test]
async fn single_offers_the_commonest_shape_as_cards_and_says_what_it_leaves_out() {
    let running = Plugin::args(&["--mig-strategy=single"]).on(MIG).await;
    running.offers(&[(GPU, 10)]).await;
    assert_eq!(running.ids(GPU), cut(&running, "1g.5gb"));
    let left = asides(&running, "strategy").await;
    assert_eq!(left.len(), 11, "ten of other shapes and a whole card");
    assert!(
        left.iter().all(|reason| reason.contains("mixed")),
        "{left:?}"
    );
    assert_eq!(asides(&running, "no-partitions").await.len(), 1);
}

#[tokio::test]
async fn mixed_offers_each_shape_under_its_own_name() {
    let file = "version: v1\nflags: {migStrategy: mixed}\n";
    let running = Plugin::file(file).on(MIG).await;
    running.offers(&MIXED).await;
    for (resource, count) in &MIXED[1..] {
        let profile = resource.strip_prefix("nvidia.com/mig-").unwrap();
        let ids = running.ids(resource);
        assert_eq!(ids, cut(&running, profile));
        assert_eq!(ids.len(), *count);
    }
    assert_eq!(running.ids(GPU), BTreeSet::from([running.rig.uuid(7)]));
    assert_eq!(asides(&running, "no-partitions").await.len(), 1);
    let granted = running.admit("nvidia.com/mig-3g.20gb", 1).await.unwrap();
    let caps = granted
        .response
        .devices
        .iter()
        .filter(|device| device.container_path.starts_with("/dev/nvidia-caps/"));
    assert_eq!(caps.count(), 2, "{:?}", granted.response.devices);
}
