//! Tests of two plugins for one resource, by the rules of both eras.

use std::time::Duration;

use sim::kubelet::{Era, Pod, RegistrationOutcome};
use tokio::time::timeout;

use crate::{
    GPU, Node, SOON,
    plugin::{Plugin, devices},
    registration::ended,
};

async fn two(node: &Node) -> (Plugin, Plugin) {
    let dir = node.kubelet.plugin_dir();
    let old = Plugin::simple(dir, "old", devices(&["a", "b"]));
    old.register(GPU).await.unwrap();
    node.wait_counts(GPU, (2, 2)).await;
    let new = Plugin::simple(dir, "new", devices(&["a", "b", "c"]));
    new.register(GPU).await.unwrap();
    node.wait_counts(GPU, (3, 3)).await;
    (old, new)
}

#[tokio::test]
async fn up_to_1_36_the_end_of_the_old_stream_tears_down_the_new_plugin() {
    let node = Node::of(Era::V1_36).await;
    let (old, new) = two(&node).await;
    old.end_streams();
    node.wait_counts(GPU, (3, 0)).await;
    ended(&new, 1).await;
    assert_eq!(new.calls.streams(), 1, "not opened again");
    let third = Plugin::simple(node.kubelet.plugin_dir(), "third", devices(&["a"]));
    third.register(GPU).await.unwrap();
    node.wait_counts(GPU, (1, 1)).await;
}

#[tokio::test]
async fn up_to_1_36_a_failed_registration_makes_the_kubelet_deaf_to_the_end_of_the_stream() {
    let node = Node::with(|settings| settings.dial = Duration::from_millis(100)).await;
    let plugin = Plugin::simple(node.kubelet.plugin_dir(), "p", devices(&["a"]));
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (1, 1)).await;
    let missing =
        crate::plugin::register(node.kubelet.plugin_dir(), "v1beta1", GPU, "nobody").await;
    missing.unwrap_err();
    plugin.end_streams();
    ended(&plugin, 1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(node.counts(GPU), Some((1, 1)));
}

#[tokio::test]
async fn from_1_37_only_the_last_stream_to_end_takes_the_resource_out() {
    let node = Node::of(Era::V1_37).await;
    let (old, new) = two(&node).await;
    old.end_streams();
    ended(&old, 1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(node.counts(GPU), Some((3, 3)));
    assert_eq!(new.calls.ended(), 0);
    new.end_streams();
    node.wait_counts(GPU, (3, 0)).await;
}

#[tokio::test]
async fn from_1_37_the_older_plugin_serves_on_when_the_newer_one_leaves() {
    let node = Node::of(Era::V1_37).await;
    let (old, new) = two(&node).await;
    let pod = || Pod::new("default", "p").with_container("c", [(GPU, 1)]);
    let admitted = node.kubelet.admit_pod(pod()).await.unwrap();
    assert_eq!(new.calls.allocated().len(), 1, "the newer one first");
    node.kubelet.remove_pod(&admitted.pod);
    new.end_streams();
    let taken_over = async {
        while old.calls.allocated().is_empty() {
            // A call that is in progress when the connection is closed fails.
            let _ = node.kubelet.admit_pod(pod()).await;
            node.kubelet.remove_pod(&pod().pod_id());
        }
    };
    timeout(SOON, taken_over).await.unwrap();
}

#[tokio::test]
async fn from_1_37_a_socket_that_is_still_connected_cannot_register_again() {
    let node = Node::of(Era::V1_37).await;
    let plugin = Plugin::simple(node.kubelet.plugin_dir(), "p", devices(&["a"]));
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (1, 1)).await;
    let message = plugin.register(GPU).await.unwrap_err().message().to_owned();
    assert!(message.ends_with("is already connected"), "{message}");
    let outcome = node.kubelet.registrations().pop().unwrap().outcome;
    assert_eq!(outcome, RegistrationOutcome::Refused(message));
    assert_eq!(node.counts(GPU), Some((1, 1)));
    assert_eq!(plugin.calls.streams(), 1);
}
