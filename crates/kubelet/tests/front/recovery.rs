//! Tests of every way to lose a registration, and of the time until the next one, on the simulated
//! kubelet.

use std::{path::Path, time::Duration};

use api::Phase;
use host::watch::WatchMode;
use kubelet::front::FrontSettings;
use rstest::rstest;
use sim::kubelet::{Era, Kubelet, KubeletSettings as Sim, Pod};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::{
    node::{GPU, LONG, MIG, Node, cards, mixed},
    registrar::{Registrar, next},
};

/// Longer than any test. A recovery within the limit of a test did not wait for it.
const NEVER: Duration = Duration::from_secs(60 * 60);

/// A simulated kubelet, and a front end that is registered with it.
struct Setting {
    kubelet: Kubelet,
    node: Node,
    dir: TempDir,
}

fn sim(dir: &Path, era: Era) -> Sim {
    Sim {
        era,
        pod_resources: Some(dir.join("pod-resources.sock")),
        ..Sim::new(dir.join("plugins"))
    }
}

/// Settings in which only the event itself, or with [`Events::Poll`] only a poll of the folder, shows the
/// loss of a registration.
fn settings(dir: &Path, events: WatchMode) -> FrontSettings {
    let usual = FrontSettings::new(dir.join("plugins"));
    FrontSettings {
        pod_resources: Some(dir.join("pod-resources.sock")),
        events,
        check: NEVER,
        poll: match events {
            WatchMode::Inotify => NEVER,
            WatchMode::Poll => usual.poll,
        },
        ..usual
    }
}

async fn setting(era: Era, events: WatchMode) -> Setting {
    let dir = tempfile::tempdir().unwrap();
    let kubelet = Kubelet::start_kubelet(sim(dir.path(), era)).await.unwrap();
    let node = Node::start(settings(dir.path(), events), 8);
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    Setting { kubelet, node, dir }
}

impl Setting {
    /// Waits until all devices are registered again, and checks that no call broke the API's rules.
    async fn recovers(&self, within: Duration) {
        self.kubelet.wait_healthy(GPU, 8, within).await.unwrap();
        self.node.reaches(Phase::Registered).await;
        assert_eq!(self.kubelet.violations(), []);
        let pod = Pod::new("test", "pod").with_container("main", [(GPU, 2)]);
        self.kubelet.admit_pod(pod).await.unwrap();
    }
}

#[rstest]
#[tokio::test]
async fn a_kubelet_that_restarts_is_registered_with_again(
    #[values(Era::V1_36, Era::V1_37)] era: Era,
    #[values(WatchMode::Inotify, WatchMode::Poll)] events: WatchMode,
) {
    let at = setting(era, events).await;
    at.kubelet.restart_kubelet().await.unwrap();
    at.recovers(LONG).await;
}

#[rstest]
#[tokio::test]
async fn a_kubelet_that_restarts_twice_at_once_is_registered_with_again(
    #[values(Era::V1_36, Era::V1_37)] era: Era,
    #[values(WatchMode::Inotify, WatchMode::Poll)] events: WatchMode,
) {
    let at = setting(era, events).await;
    at.kubelet
        .restart_twice(Duration::from_millis(50))
        .await
        .unwrap();
    at.recovers(LONG).await;
}

#[rstest]
#[tokio::test]
async fn a_kubelet_socket_that_is_created_anew_under_an_open_stream_is_noticed(
    #[values(WatchMode::Inotify, WatchMode::Poll)] events: WatchMode,
) {
    let dir = tempfile::tempdir().unwrap();
    let mut first = Registrar::start(dir.path());
    let mut settings = FrontSettings::new(dir.path());
    settings.events = events;
    let node = Node::start(settings, 2);
    let (_plugin, mut open) = first.admit().await;
    next(&mut open).await;
    node.reaches(Phase::Registered).await;

    let mut second = Registrar::start(dir.path());

    let (_plugin, mut stream) = second.admit().await;
    assert_eq!(next(&mut stream).await.len(), 2);
    // Only one stream at a time: the old one ended before the new registration.
    assert!(open.message().await.is_ok_and(|end| end.is_none()));
}

#[tokio::test]
async fn a_kubelet_socket_that_is_only_removed_is_no_reason_to_leave() {
    let dir = tempfile::tempdir().unwrap();
    let mut kubelet = Registrar::start(dir.path());
    let mut settings = FrontSettings::new(dir.path());
    settings.poll = Duration::from_millis(20);
    let node = Node::start(settings, 2);
    let (_plugin, mut stream) = kubelet.admit().await;
    next(&mut stream).await;
    node.reaches(Phase::Registered).await;
    fs_err::remove_file(dir.path().join("kubelet.sock")).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    node.offers.send_replace(cards(3, &[]));
    assert_eq!(next(&mut stream).await.len(), 3);
    assert_eq!(node.reaches(Phase::Registered).await.registrations, 1);
}

#[rstest]
#[tokio::test]
async fn a_stream_that_the_kubelet_cut_is_followed_by_a_new_registration(
    #[values(Era::V1_36, Era::V1_37)] era: Era,
) {
    let at = setting(era, WatchMode::Inotify).await;
    for _ in 0..2 {
        let before = at.kubelet.registrations().len();
        assert!(at.kubelet.cut_stream(GPU));
        let again = |kubelet: &Kubelet| kubelet.registrations().len() > before;
        at.kubelet
            .wait_until("a new registration", again, LONG)
            .await
            .unwrap();
        at.kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    }
    at.recovers(LONG).await;
}

#[rstest]
#[tokio::test]
async fn a_resource_that_the_kubelet_forgot_is_registered_again(
    #[values(Era::V1_36, Era::V1_37)] era: Era,
) {
    let dir = tempfile::tempdir().unwrap();
    let kubelet = Kubelet::start_kubelet(sim(dir.path(), era)).await.unwrap();
    let mut settings = settings(dir.path(), WatchMode::Inotify);
    settings.check = Duration::from_millis(500);
    let node = Node::start(settings, 8);
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    let at = Setting { kubelet, node, dir };

    assert!(at.kubelet.forget_resource(GPU));

    at.recovers(LONG).await;
    assert_eq!(at.kubelet.registrations().len(), 2);
    assert!(at.dir.path().join("pod-resources.sock").exists());
}

#[tokio::test]
async fn nothing_healthy_to_count_is_not_taken_for_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let kubelet = Kubelet::start_kubelet(sim(dir.path(), Era::V1_36))
        .await
        .unwrap();
    let mut settings = settings(dir.path(), WatchMode::Inotify);
    settings.check = Duration::from_millis(30);
    settings.spacing = Duration::from_millis(30);
    // Because of the healthy card the kubelet is asked. Its answers lack the other resource.
    let node = Node::with(settings, mixed(true));
    kubelet.wait_healthy(GPU, 1, LONG).await.unwrap();
    node.shows_of(MIG, "registered", |row| row.phase == Phase::Registered)
        .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(kubelet.registrations().len(), 2);
}

#[rstest]
#[case::absent(None)]
#[case::not_a_socket(Some("text"))]
#[tokio::test]
async fn a_pod_resources_socket_that_does_not_answer_is_no_evidence(#[case] file: Option<&str>) {
    let dir = tempfile::tempdir().unwrap();
    let plugins = dir.path().join("plugins");
    let kubelet = Kubelet::start_kubelet(Sim::new(&plugins)).await.unwrap();
    let mut settings = settings(dir.path(), WatchMode::Inotify);
    settings.check = Duration::from_millis(30);
    settings.spacing = Duration::from_millis(30);
    if let Some(text) = file {
        fs_err::write(dir.path().join("pod-resources.sock"), text).unwrap();
    }
    let node = Node::start(settings, 8);
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(node.reaches(Phase::Registered).await.registrations, 1);
}

#[rstest]
#[tokio::test]
async fn the_agent_may_start_before_the_kubelet(
    #[values(WatchMode::Inotify, WatchMode::Poll)] events: WatchMode,
) {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(dir.path(), events);
    // An absent folder cannot be watched, so only the poll finds it.
    settings.poll = FrontSettings::new(dir.path()).poll;
    let node = Node::start(settings, 8);
    node.shows("waiting", |row| row.message.contains("no folder"))
        .await;
    let kubelet = Kubelet::start_kubelet(sim(dir.path(), Era::V1_36))
        .await
        .unwrap();
    Setting { kubelet, node, dir }.recovers(LONG).await;
}

#[tokio::test]
async fn a_kubelet_that_appears_is_registered_with_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let plugins = dir.path().join("plugins");
    fs_err::create_dir(&plugins).unwrap();
    let node = Node::start(settings(dir.path(), WatchMode::Inotify), 8);
    node.shows("waiting", |row| row.message.contains("no kubelet.sock"))
        .await;
    let begun = Instant::now();
    let kubelet = Kubelet::start_kubelet(sim(dir.path(), Era::V1_36))
        .await
        .unwrap();
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    node.reaches(Phase::Registered).await;
    let took = begun.elapsed();
    // The aim is 250 ms on an idle machine. A loaded CI machine takes longer, so it is not checked.
    println!("kubelet.sock to registered: {took:?}");
}

#[tokio::test]
async fn a_kubelet_that_stays_away_for_a_while_is_waited_for() {
    let at = setting(Era::V1_36, WatchMode::Inotify).await;
    at.kubelet.stop_kubelet().await;
    at.node
        .shows("waiting", |row| {
            row.phase == Phase::WaitingForKubelet && row.message.contains("does not accept")
        })
        .await;
    at.kubelet.start_again().await.unwrap();
    at.recovers(LONG).await;
}

#[tokio::test]
async fn a_refusal_is_retried_and_told_in_the_kubelets_words() {
    let dir = tempfile::tempdir().unwrap();
    let kubelet = Kubelet::start_kubelet(sim(dir.path(), Era::V1_36))
        .await
        .unwrap();
    kubelet.refuse_next(2, "the device manager is not ready");
    let node = Node::start(settings(dir.path(), WatchMode::Inotify), 8);
    let row = node.reaches(Phase::Refused).await;
    assert!(row.message.contains("is not ready"), "{}", row.message);
    Setting { kubelet, node, dir }.recovers(LONG).await;
}

#[tokio::test]
async fn a_kubelet_that_stalls_is_left_when_it_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let kubelet = Kubelet::start_kubelet(sim(dir.path(), Era::V1_36))
        .await
        .unwrap();
    kubelet.stall(Duration::MAX);
    let node = Node::start(settings(dir.path(), WatchMode::Inotify), 8);
    let asked = |kubelet: &Kubelet| !kubelet.registrations().is_empty();
    kubelet.wait_until("asked", asked, LONG).await.unwrap();
    kubelet.stall(Duration::ZERO);
    kubelet.restart_kubelet().await.unwrap();
    Setting { kubelet, node, dir }.recovers(LONG).await;
}
