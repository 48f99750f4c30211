//! Tests of the stream of device lists.

use std::{sync::Arc, time::Duration};

use api::Phase;
use kubelet::front::FrontSettings;
use kubelet_api::deviceplugin::Empty;
use pool::{Offer, Offers, UnitId};
use tonic::Code;

use crate::{
    node::{GPU, Node, cards},
    registrar::{Registrar, next},
    setting::setting,
};

#[tokio::test]
async fn the_list_is_complete_at_once_and_sent_again_only_when_it_changed() {
    let mut at = setting(cards(3, &[1])).await;
    let first = next(&mut at.stream).await;
    let seen: Vec<_> = first
        .iter()
        .map(|device| {
            let topology = device.topology.as_ref();
            let numa = topology.map(|t| t.nodes.iter().map(|n| n.id).collect::<Vec<_>>());
            (device.id.as_str(), device.health.as_str(), numa)
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("GPU-0000", "Healthy", Some(vec![0])),
            ("GPU-0001", "Unhealthy", Some(vec![1])),
            ("GPU-0002", "Healthy", None),
        ]
    );

    // An equal list is not sent, so the next message is the list after it.
    at.node.offers.send_replace(cards(3, &[1]));
    at.node.shows("unchanged", |row| row.healthy == 2).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    at.node.offers.send_replace(cards(3, &[]));
    let healthy = next(&mut at.stream).await;
    assert!(healthy.iter().all(|device| device.health == "Healthy"));
    let row = at.node.shows("healthy", |row| row.healthy == 3).await;
    assert_eq!((row.units, row.registrations), (3, 1));
}

#[tokio::test]
async fn a_resource_that_vanishes_keeps_its_plugin_with_an_empty_list() {
    let mut at = setting(cards(2, &[])).await;
    assert_eq!(next(&mut at.stream).await.len(), 2);
    at.node.offers.send_replace(Arc::new([]));
    assert!(next(&mut at.stream).await.is_empty());
    at.node.shows("empty", |row| row.units == 0).await;
    at.node.offers.send_replace(cards(1, &[]));
    assert_eq!(next(&mut at.stream).await.len(), 1);
    assert_eq!(at.node.reaches(Phase::Registered).await.registrations, 1);
}

/// Offers with more units than the kubelet accepts in one message.
fn huge() -> Offers {
    let offer = &cards(1, &[])[0];
    let unit = &offer.units[0];
    let units = (0..100_000)
        .map(|n| pool::Unit {
            id: UnitId::new(format!("GPU-with-a-long-name-{n:030}")),
            ..unit.clone()
        })
        .collect();
    Arc::new([Arc::new(Offer {
        units,
        ..Offer::clone(offer)
    })])
}

#[tokio::test]
async fn a_list_that_is_too_large_is_withheld_and_the_reason_shown() {
    let mut at = setting(cards(2, &[])).await;
    assert_eq!(next(&mut at.stream).await.len(), 2);
    at.node.offers.send_replace(huge());
    let row = at
        .node
        .shows("withheld", |row| row.withheld.is_some())
        .await;
    let reason = row.withheld.unwrap();
    assert!(
        reason.contains("100000 units") && reason.contains("4194304"),
        "{reason}"
    );

    let refused = at.plugin.list_and_watch(Empty {}).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    // The stream that is open goes on with the next list within the limit.
    at.node.offers.send_replace(cards(3, &[]));
    assert_eq!(next(&mut at.stream).await.len(), 3);
    at.node.shows("sent", |row| row.withheld.is_none()).await;
}

#[tokio::test]
async fn nothing_is_registered_while_the_list_is_too_large() {
    let dir = tempfile::tempdir().unwrap();
    let mut kubelet = Registrar::start(dir.path());
    let node = Node::with(FrontSettings::new(dir.path()), huge());
    let row = node.reaches(Phase::Failed).await;
    assert!(row.message.contains("at most 4194304"), "{}", row.message);
    node.offers.send_replace(cards(1, &[]));
    let (_plugin, mut stream) = kubelet.admit().await;
    assert_eq!(next(&mut stream).await.len(), 1);
    assert_eq!(node.reaches(Phase::Registered).await.resource.as_str(), GPU);
}
