//! Tests with two agents on one node, as in a rolling upgrade with `maxSurge`.

use std::time::Duration;

use api::Phase;
use kubelet::front::FrontSettings;
use rstest::rstest;
use sim::kubelet::{Breach, Era, Kubelet, KubeletSettings as Sim};

use crate::node::{GPU, LONG, Node, sockets};

async fn kubelet(era: Era) -> (tempfile::TempDir, Kubelet) {
    let dir = tempfile::tempdir().unwrap();
    let settings = Sim {
        era,
        ..Sim::new(dir.path())
    };
    (dir, Kubelet::start_kubelet(settings).await.unwrap())
}

/// Broken rules, without registrations in quick succession: both agents are one process here, and
/// the kubelet takes them for one.
fn complaints(kubelet: &Kubelet) -> Vec<Breach> {
    let breaches = kubelet.violations().into_iter().map(|v| v.breach);
    let expected = |breach: &Breach| matches!(breach, Breach::RegisteredTooSoon(_));
    breaches.filter(|breach| !expected(breach)).collect()
}

#[rstest]
#[tokio::test]
async fn one_after_the_other_brings_everything_back(#[values(Era::V1_36, Era::V1_37)] era: Era) {
    let (dir, kubelet) = kubelet(era).await;
    let old = Node::start(FrontSettings::new(dir.path()), 8);
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    old.stop().await;
    kubelet.wait_healthy(GPU, 0, LONG).await.unwrap();
    assert_eq!(sockets(dir.path()), Vec::<String>::new());

    let new = Node::start(FrontSettings::new(dir.path()), 8);
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    new.reaches(Phase::Registered).await;
    assert_eq!(complaints(&kubelet), []);
}

#[tokio::test]
async fn a_new_kubelet_never_loses_a_device_while_two_agents_overlap() {
    let (dir, kubelet) = kubelet(Era::V1_37).await;
    let old = Node::start(FrontSettings::new(dir.path()), 8);
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    let new = Node::start(FrontSettings::new(dir.path()), 8);
    new.reaches(Phase::Registered).await;
    assert_eq!(kubelet.node_status()[GPU].allocatable, 8);
    old.stop().await;
    for _ in 0..50 {
        assert_eq!(kubelet.node_status()[GPU].allocatable, 8);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(complaints(&kubelet), []);
}

#[tokio::test]
async fn an_old_kubelet_that_drops_the_new_agent_with_the_old_one_has_it_back_soon() {
    let (dir, kubelet) = kubelet(Era::V1_36).await;
    let old = Node::start(FrontSettings::new(dir.path()), 8);
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    let new = Node::start(FrontSettings::new(dir.path()), 8);
    new.reaches(Phase::Registered).await;

    old.stop().await;

    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let back = kubelet.wait_healthy(GPU, 8, LONG).await;
    assert_eq!(back.unwrap().len(), 8);
    new.reaches(Phase::Registered).await;
    assert_eq!(complaints(&kubelet), []);
}
