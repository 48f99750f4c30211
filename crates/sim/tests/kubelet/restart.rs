//! Tests of restarts of the kubelet: the state that is lost and the state that stays.

use std::{os::unix::fs::MetadataExt as _, time::Duration};

use sim::kubelet::{AdmissionError, CHECKPOINT, Error, Kubelet, KubeletSettings, Pod};
use tokio::net::UnixStream;

use crate::{
    GPU, Node, SOON,
    plugin::{Plugin, devices, on},
    registration::ended,
};

async fn ready(node: &Node, endpoint: &str) -> Plugin {
    let plugin = Plugin::simple(
        node.kubelet.plugin_dir(),
        endpoint,
        vec![on("a", &[0]), on("b", &[1])],
    );
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (2, 2)).await;
    plugin
}

fn pod(name: &str) -> Pod {
    Pod::new("default", name).with_container("main", [(GPU, 1)])
}

#[tokio::test]
async fn a_restart_deletes_sockets_and_nothing_else() {
    let node = Node::new().await;
    let dir = node.kubelet.plugin_dir().to_owned();
    let plugin = ready(&node, "p").await;
    fs_err::write(dir.join("notes"), "mine").unwrap();
    fs_err::create_dir(dir.join("folder")).unwrap();
    let before = fs_err::metadata(dir.join("kubelet.sock")).unwrap();
    node.kubelet.restart_kubelet().await.unwrap();

    assert!(!dir.join("p").exists());
    assert_eq!(fs_err::read_to_string(dir.join("notes")).unwrap(), "mine");
    assert!(dir.join("folder").is_dir());
    assert!(dir.join(CHECKPOINT).is_file());
    let after = fs_err::metadata(dir.join("kubelet.sock")).unwrap();
    assert_ne!(
        (before.ino(), before.ctime_nsec()),
        (after.ino(), after.ctime_nsec())
    );
    ended(&plugin, 1).await;
}

#[tokio::test]
async fn after_a_restart_a_known_resource_has_zero_devices_until_it_registers() {
    let node = Node::new().await;
    let _old = ready(&node, "p-1").await;
    node.kubelet.restart_kubelet().await.unwrap();
    assert_eq!(node.counts(GPU), Some((0, 0)));
    let error = node.kubelet.admit_pod(pod("p")).await.unwrap_err();
    assert!(
        error.to_string().contains("no healthy devices present"),
        "{error}"
    );
    let _new = ready(&node, "p-2").await;
    node.kubelet.admit_pod(pod("p")).await.unwrap();
    assert_eq!(node.kubelet.registrations().len(), 2);
}

#[tokio::test]
async fn running_pods_keep_their_devices_over_a_restart() {
    let node = Node::new().await;
    let old = ready(&node, "p-1").await;
    let admitted = node.kubelet.admit_pod(pod("p")).await.unwrap();
    node.kubelet.restart_kubelet().await.unwrap();
    let again = node
        .kubelet
        .restart_container(&admitted.pod, "main")
        .await
        .unwrap();
    assert_eq!(again, admitted.containers["main"]);

    let new = ready(&node, "p-2").await;
    let other = node.kubelet.admit_pod(pod("q")).await.unwrap();
    let devices = |granted: &sim::kubelet::GrantedDevices| granted.devices[GPU].clone();
    assert!(devices(&again).is_disjoint(&devices(&other.containers["main"])));
    assert_eq!(old.calls.allocated().len() + new.calls.allocated().len(), 2);
}

#[tokio::test]
async fn a_known_resource_that_does_not_come_back_is_forgotten_after_the_grace() {
    let node = Node::with(|settings| settings.grace = Duration::from_millis(200)).await;
    let _plugin = ready(&node, "p").await;
    node.kubelet.restart_kubelet().await.unwrap();
    let forgotten = |kubelet: &Kubelet| {
        let text = fs_err::read_to_string(kubelet.plugin_dir().join(CHECKPOINT)).unwrap();
        !text.contains(GPU)
    };
    let waited = node.kubelet.wait_until("forgotten", forgotten, SOON).await;
    waited.unwrap();
    assert_eq!(node.counts(GPU), Some((0, 0)), "the name stays");
}

#[tokio::test]
async fn the_checkpoint_names_the_pods_devices_by_numa_node() {
    let node = Node::new().await;
    let _plugin = ready(&node, "p").await;
    let admitted = node.kubelet.admit_pod(pod("p")).await.unwrap();
    let text = fs_err::read_to_string(node.kubelet.plugin_dir().join(CHECKPOINT)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let entry = &json["Data"]["PodDeviceEntries"][0];
    assert_eq!(entry["PodUID"], admitted.uid);
    assert_eq!(entry["DeviceIDs"], serde_json::json!({"0": ["a"]}));
    let registered = &json["Data"]["RegisteredDevices"][GPU];
    assert_eq!(*registered, serde_json::json!(["a", "b"]));
}

#[tokio::test]
async fn a_broken_checkpoint_is_left_behind() {
    let node = Node::new().await;
    let _plugin = ready(&node, "p-1").await;
    node.kubelet.admit_pod(pod("p")).await.unwrap();
    node.kubelet.stop_kubelet().await;
    let file = node.kubelet.plugin_dir().join(CHECKPOINT);
    fs_err::write(file, "{\"Data\":").unwrap();
    node.kubelet.start_again().await.unwrap();
    assert_eq!(
        node.counts(GPU),
        Some((0, 0)),
        "the node's status is not the kubelet's"
    );
    let _plugin = ready(&node, "p-2").await;
}

#[tokio::test]
async fn what_pods_of_another_life_held_is_free_for_the_next_pod() {
    let node = Node::new().await;
    let _plugin = ready(&node, "p-1").await;
    let both = Pod::new("default", "p").with_container("main", [(GPU, 2)]);
    node.kubelet.admit_pod(both.clone()).await.unwrap();
    let dir = node.kubelet.plugin_dir().to_owned();
    let Node { kubelet, dir: temp } = node;
    drop(kubelet);
    let kubelet = Kubelet::start_kubelet(KubeletSettings::new(dir))
        .await
        .unwrap();
    let node = Node { kubelet, dir: temp };
    let _plugin = ready(&node, "p-2").await;
    node.kubelet.admit_pod(both).await.unwrap();
}

#[tokio::test]
async fn two_restarts_in_a_row_leave_a_kubelet_that_serves() {
    let node = Node::new().await;
    let _old = ready(&node, "p-1").await;
    node.kubelet
        .restart_twice(Duration::from_millis(50))
        .await
        .unwrap();
    assert_eq!(node.counts(GPU), Some((0, 0)));
    let _new = ready(&node, "p-2").await;
}

#[tokio::test]
async fn a_stopped_kubelet_leaves_a_dead_socket_and_admits_nobody() {
    let node = Node::new().await;
    let plugin = ready(&node, "p-1").await;
    node.kubelet.stop_kubelet().await;
    ended(&plugin, 1).await;
    let socket = node.kubelet.plugin_dir().join("kubelet.sock");
    assert!(socket.exists());
    UnixStream::connect(&socket).await.unwrap_err();
    let error = node.kubelet.admit_pod(pod("p")).await.unwrap_err();
    assert_eq!(error, AdmissionError::Stopped);
    node.kubelet.stop_kubelet().await;

    node.kubelet.start_again().await.unwrap();
    let twice = node.kubelet.start_again().await;
    assert!(matches!(twice, Err(Error::Running { .. })));
    let _plugin = ready(&node, "p-2").await;
}

#[tokio::test]
async fn everything_ends_with_the_last_handle() {
    let node = Node::new().await;
    let plugin = ready(&node, "p").await;
    let socket = node.kubelet.plugin_dir().join("kubelet.sock");
    let other = node.kubelet.clone();
    drop(node.kubelet);
    UnixStream::connect(&socket).await.unwrap();
    drop(other);
    ended(&plugin, 1).await;
    let refused = async {
        while UnixStream::connect(&socket).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, refused).await.unwrap();
    drop(node.dir);
}

#[tokio::test]
async fn it_restarts_under_registrations_from_another_thread() {
    let node = Node::new().await;
    let dir = node.kubelet.plugin_dir().to_owned();
    let registering = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            for round in 0..30 {
                let plugin = Plugin::simple(&dir, &format!("p-{round}"), devices(&["a"]));
                // The result depends on the moment of the kill.
                let call = tokio::time::timeout(Duration::from_millis(50), plugin.register(GPU));
                let _ = call.await;
            }
        });
    });
    while !registering.is_finished() {
        node.kubelet.restart_kubelet().await.unwrap();
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    registering.join().unwrap();
    node.kubelet.restart_kubelet().await.unwrap();
    let _plugin = ready(&node, "last").await;
}

#[tokio::test]
async fn a_directory_whose_name_is_too_long_for_a_socket_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let long = dir.path().join("x".repeat(120));
    let error = Kubelet::start_kubelet(KubeletSettings::new(&long))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Listen { .. }), "{error}");
    assert!(error.to_string().contains("kubelet.sock"), "{error}");
}
