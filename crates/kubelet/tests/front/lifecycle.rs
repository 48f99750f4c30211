//! Tests of start, stop, sockets and refusals.

use std::{
    collections::BTreeMap,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    time::Duration,
};

use api::Phase;
use kubelet::front::{self, FrontSettings};
use tokio::{
    io::AsyncReadExt,
    net::UnixStream,
    sync::watch,
    task::JoinSet,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::{
    node::{GPU, LONG, MIG, Node, cards, mixed, sockets},
    registrar::{Registrar, dial, next},
};

#[tokio::test]
async fn registers_each_resource_on_a_root_only_socket_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut kubelet = Registrar::start(dir.path());
    let node = Node::with(FrontSettings::new(dir.path()), mixed(false));
    let mut names = Vec::new();
    let mut held = Vec::new();
    for _ in 0..2 {
        let request = kubelet.next().await;
        assert_eq!(request.version, "v1beta1");
        let path = dir.path().join(&request.endpoint);
        let mode = fs_err::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut plugin = kubelet.dial(&request).await;
        let empty = kubelet_api::deviceplugin::Empty {};
        held.push(plugin.list_and_watch(empty).await.unwrap());
        names.push(request.resource_name);
    }
    names.sort();
    assert_eq!(names, [GPU, MIG]);
    assert_eq!(sockets(dir.path()).len(), 2);
    for resource in names {
        node.shows_of(&resource, "registered", |row| {
            row.phase == Phase::Registered && row.socket.is_some()
        })
        .await;
    }
}

#[tokio::test]
async fn ends_and_leaves_no_socket_though_streams_and_silent_peers_are_open() {
    let dir = tempfile::tempdir().unwrap();
    let mut kubelet = Registrar::start(dir.path());
    let node = Node::start(FrontSettings::new(dir.path()), 2);
    let (_plugin, mut stream) = kubelet.admit().await;
    next(&mut stream).await;
    let row = node.reaches(Phase::Registered).await;
    let path = dir.path().join(row.socket.unwrap());
    let mut silent = UnixStream::connect(path).await.unwrap();
    // The server must have accepted the connection: one in the queue would not delay the end.
    tokio::time::sleep(Duration::from_millis(100)).await;

    node.stop().await;

    assert_eq!(sockets(dir.path()), Vec::<String>::new());
    assert!(stream.message().await.is_ok_and(|end| end.is_none()));
    let closed = timeout(LONG, silent.read_to_end(&mut Vec::new())).await;
    assert!(closed.is_ok(), "the silent peer is still connected");
}

#[tokio::test]
async fn ends_while_the_kubelet_says_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let _deaf = UnixListener::bind(dir.path().join("kubelet.sock")).unwrap();
    let mut settings = FrontSettings::new(dir.path());
    // The test would take ten minutes if the end waited for this limit.
    settings.register_limit = LONG * 10;
    let node = Node::start(settings, 1);
    node.reaches(Phase::Registering).await;
    node.stop().await;
    assert_eq!(sockets(dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_refusal_is_shown_in_the_kubelets_words_and_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = Status::unknown("no such\nversion");
    let mut kubelet = Registrar::refusing(dir.path(), [refusal]);
    let node = Node::start(FrontSettings::new(dir.path()), 1);
    let row = node.reaches(Phase::Refused).await;
    assert!(row.message.contains("no such version"), "{}", row.message);
    assert_eq!((row.registrations, row.socket), (0, None));
    assert_eq!(sockets(dir.path()), Vec::<String>::new());

    let (_plugin, _stream) = kubelet.admit().await;
    assert_eq!(node.reaches(Phase::Registered).await.registrations, 1);
}

#[tokio::test]
async fn a_refusal_that_comes_again_is_no_news() {
    let dir = tempfile::tempdir().unwrap();
    let refusals = vec![Status::internal("cannot dial {endpoint}"); 1000];
    let kubelet = Registrar::refusing(dir.path(), refusals);
    let mut settings = FrontSettings::new(dir.path());
    settings.spacing = Duration::from_millis(10);
    settings.backoff = Duration::from_millis(10);
    let node = Node::start(settings, 1);
    let row = node.reaches(Phase::Refused).await;
    assert!(
        row.message.contains("cannot dial our socket"),
        "{}",
        row.message
    );
    let mut status = node.status.clone();
    status.mark_unchanged();
    kubelet.refused_down_to(990).await;
    assert!(!status.has_changed().unwrap(), "{:?}", status.borrow());
}

#[tokio::test]
async fn a_kubelet_that_does_not_answer_is_named_and_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let deaf = UnixListener::bind(dir.path().join("kubelet.sock")).unwrap();
    let mut settings = FrontSettings::new(dir.path());
    settings.register_limit = Duration::from_millis(200);
    let node = Node::start(settings, 1);
    let row = node.reaches(Phase::Failed).await;
    assert!(row.message.contains("did not answer"), "{}", row.message);
    drop(deaf);
    let mut kubelet = Registrar::start(dir.path());
    let (_plugin, _stream) = kubelet.admit().await;
    node.reaches(Phase::Registered).await;
}

#[tokio::test]
async fn a_kubelet_that_hangs_up_is_told_apart_from_one_that_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let listener = tokio::net::UnixListener::bind(dir.path().join("kubelet.sock")).unwrap();
    let node = Node::start(FrontSettings::new(dir.path()), 1);
    drop(listener.accept().await.unwrap());
    let row = node.reaches(Phase::Failed).await;
    assert!(
        row.message.contains("connection to the kubelet failed"),
        "{}",
        row.message
    );
}

#[tokio::test]
async fn a_kubelet_that_opens_no_stream_is_asked_again_under_a_new_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut kubelet = Registrar::start(dir.path());
    let mut settings = FrontSettings::new(dir.path());
    settings.stream_limit = Duration::from_millis(100);
    let node = Node::start(settings, 1);
    let first = kubelet.next().await.endpoint;
    let row = node.reaches(Phase::Failed).await;
    assert!(
        row.message.contains("did not ask for the list"),
        "{}",
        row.message
    );
    let second = kubelet.next().await.endpoint;
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_dead_kubelet_socket_is_told_apart_from_a_missing_one() {
    let dir = tempfile::tempdir().unwrap();
    let plugins = dir.path().join("device-plugins");
    let node = Node::start(FrontSettings::new(&plugins), 1);
    node.shows("without a folder", |row| row.message.contains("no folder"))
        .await;
    fs_err::create_dir(&plugins).unwrap();
    node.shows("without a socket", |row| {
        row.message.contains("no kubelet.sock")
    })
    .await;
    drop(UnixListener::bind(plugins.join("kubelet.sock")).unwrap());
    node.shows("refused", |row| {
        row.message.contains("does not accept") && row.phase == Phase::WaitingForKubelet
    })
    .await;
    assert_eq!(sockets(&plugins), Vec::<String>::new());
    let mut kubelet = Registrar::start(&plugins);
    let (_plugin, _stream) = kubelet.admit().await;
    node.reaches(Phase::Registered).await;
}

#[tokio::test]
async fn a_folder_with_a_path_that_is_too_long_is_a_reason_and_no_end() {
    let dir = tempfile::tempdir().unwrap();
    let long = dir.path().join("x".repeat(100));
    fs_err::create_dir(&long).unwrap();
    fs_err::write(long.join("kubelet.sock"), "").unwrap();
    let node = Node::start(FrontSettings::new(&long), 1);
    let row = node.reaches(Phase::Failed).await;
    for part in [long.to_str().unwrap(), "at most 107", "shorter path"] {
        assert!(row.message.contains(part), "{} lacks {part}", row.message);
    }
    node.stop().await;
}

#[tokio::test]
async fn sockets_of_dead_processes_are_removed_and_live_ones_kept() {
    let dir = tempfile::tempdir().unwrap();
    let dead = dir.path().join("ostler-nvidia.com_gpu-00000000-0.sock");
    drop(UnixListener::bind(&dead).unwrap());
    let live = dir.path().join("ostler-nvidia.com_gpu-11111111-0.sock");
    let _listener = UnixListener::bind(&live).unwrap();
    let node = Node::start(FrontSettings::new(dir.path()), 1);
    let deadline = Instant::now() + LONG;
    while dead.exists() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!dead.exists());
    node.stop().await;
    assert!(live.exists());
}

#[tokio::test]
async fn our_own_socket_vanishing_leads_to_a_new_registration() {
    let dir = tempfile::tempdir().unwrap();
    let mut kubelet = Registrar::start(dir.path());
    let node = Node::start(FrontSettings::new(dir.path()), 1);
    let (_plugin, mut old) = kubelet.admit().await;
    let row = node.reaches(Phase::Registered).await;
    next(&mut old).await;
    fs_err::remove_file(dir.path().join(row.socket.unwrap())).unwrap();
    let (_plugin, _stream) = kubelet.admit().await;
    // The old stream ended before the new registration.
    assert!(old.message().await.is_ok_and(|end| end.is_none()));
    node.shows("again", |row| row.registrations == 2).await;
}

#[tokio::test]
async fn one_resource_in_trouble_leaves_the_other_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut kubelet = Registrar::start(dir.path());
    let mut settings = FrontSettings::new(dir.path());
    settings.stream_limit = Duration::from_millis(100);
    let node = Node::with(settings, mixed(false));
    // Only the first registration gets a stream; the other resource fails again and again.
    let (_plugin, mut stream) = kubelet.admit().await;
    assert_eq!(next(&mut stream).await.len(), 1);
    let mut status = node.status.clone();
    status
        .wait_for(|status| {
            let phases: Vec<Phase> = status.resources.iter().map(|row| row.phase).collect();
            phases.contains(&Phase::Registered) && phases.contains(&Phase::Failed)
        })
        .await
        .unwrap();
    kubelet.next().await;
    kubelet.next().await;
    let status = node.status.borrow().clone();
    let mut rows = status.resources.iter();
    let fine = rows.find(|row| row.phase == Phase::Registered).unwrap();
    assert_eq!(fine.registrations, 1);
}

#[tokio::test]
async fn a_resource_that_is_offered_no_more_empties_its_list_and_goes() {
    let dir = tempfile::tempdir().unwrap();
    let mut kubelet = Registrar::start(dir.path());
    let mut settings = FrontSettings::new(dir.path());
    settings.retire_after = Duration::from_millis(300);
    let node = Node::with(settings, mixed(false));
    let mut streams = BTreeMap::new();
    for _ in 0..2 {
        let request = kubelet.next().await;
        let mut plugin = kubelet.dial(&request).await;
        let empty = kubelet_api::deviceplugin::Empty {};
        let stream = plugin.list_and_watch(empty).await.unwrap().into_inner();
        streams.insert(request.resource_name, (request.endpoint, stream));
    }
    let (first, mut gone) = streams.remove(MIG).unwrap();
    let (_, mut stays) = streams.remove(GPU).unwrap();
    assert_eq!(next(&mut gone).await.len(), 1);
    assert_eq!(next(&mut stays).await.len(), 1);

    node.offers.send_replace(cards(1, &[]));

    assert_eq!(next(&mut gone).await.len(), 0, "empty before it ends");
    let end = timeout(LONG, gone.message()).await.unwrap();
    assert!(end.is_ok_and(|end| end.is_none()));
    let forgotten = |status: &kubelet::Status| status.find_resource(MIG).is_none();
    let mut status = node.status.clone();
    timeout(LONG, status.wait_for(forgotten))
        .await
        .unwrap()
        .unwrap();
    let removed = async {
        while sockets(dir.path()).len() > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, removed).await.expect("its socket is left");

    node.offers.send_replace(mixed(false));
    let again = kubelet.next().await;
    assert_eq!(again.resource_name, MIG);
    assert_ne!(again.endpoint, first, "no socket name comes again");
    let more = timeout(Duration::from_millis(100), stays.message()).await;
    assert!(
        more.is_err(),
        "the stream of the other one is untouched: {more:?}"
    );
}

#[tokio::test]
async fn serves_without_a_kubelet_where_it_is_not_to_register() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = FrontSettings::new(dir.path());
    settings.register = false;
    let node = Node::start(settings, 2);
    let row = node.shows("serving", |row| row.socket.is_some()).await;
    let endpoint = row.socket.unwrap();
    let mut plugin = dial(&dir.path().join(&endpoint)).await;
    let empty = kubelet_api::deviceplugin::Empty {};
    let mut stream = plugin.list_and_watch(empty).await.unwrap().into_inner();
    assert_eq!(next(&mut stream).await.len(), 2);
    assert_eq!(row.registrations, 0);
    node.stop().await;
    assert_eq!(sockets(dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_front_end_that_starts_again_forgets_what_is_offered_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = FrontSettings::new(dir.path());
    settings.register = false;
    let (offers, receiver) = watch::channel(mixed(false));
    let (board, mut status) = watch::channel(kubelet::Status::default());
    let rows = |status: &kubelet::Status| -> Vec<String> {
        let rows = status.resources.iter();
        let serving = rows.filter(|row| row.socket.is_some());
        serving.map(|row| row.resource.to_string()).collect()
    };
    for expected in [&[GPU, MIG][..], &[GPU]] {
        let stop = CancellationToken::new();
        let (settings, receiver) = (settings.clone(), receiver.clone());
        let front = front::run_front_end(settings, receiver, board.clone(), stop.clone());
        let mut task = JoinSet::new();
        task.spawn(front);
        let served = status.wait_for(|status| rows(status) == expected);
        timeout(LONG, served).await.unwrap().unwrap();
        stop.cancel();
        timeout(LONG, task.join_next()).await.unwrap();
        offers.send_replace(cards(1, &[]));
    }
}
