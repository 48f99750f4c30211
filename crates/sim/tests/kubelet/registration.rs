//! Tests of Register, of the stream that follows, and of its end.

use std::{sync::atomic::Ordering, time::Duration};

use kubelet_api::deviceplugin::{Device, DevicePluginOptions};
use rstest::rstest;
use sim::kubelet::{Breach, RegistrationOutcome};
use tokio::time::timeout;
use tonic::{Code, Status};

use crate::{
    GPU, NIC, Node, SOON,
    plugin::{Plugin, Script, device, devices, on, register},
};

#[tokio::test]
async fn a_registered_plugin_is_listed_with_health_and_topology() {
    let node = Node::new().await;
    let list = vec![on("a", &[1]), device("b", false)];
    let plugin = Plugin::simple(node.kubelet.plugin_dir(), "p-1.sock", list.clone());
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (2, 1)).await;

    let seen = node.kubelet.resource_devices(GPU);
    assert!(seen["a"].healthy && !seen["b"].healthy);
    assert_eq!(
        (&seen["a"].numa[..], &seen["b"].numa[..]),
        (&[1][..], &[][..])
    );
    let registrations = node.kubelet.registrations();
    assert_eq!(registrations.len(), 1);
    assert_eq!(registrations[0].endpoint, "p-1.sock");
    assert_eq!(registrations[0].outcome, RegistrationOutcome::Accepted);
    let pid = i32::try_from(std::process::id()).unwrap();
    assert_eq!(registrations[0].pid, Some(pid));
    assert_eq!(node.kubelet.device_lists(GPU)[0].devices, list);
    assert_eq!(node.breaches(), [""; 0]);
}

#[tokio::test]
async fn each_list_replaces_the_one_before() {
    let node = Node::new().await;
    let plugin = Plugin::simple(node.kubelet.plugin_dir(), "p", devices(&["a", "b", "c"]));
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (3, 3)).await;
    plugin.send(vec![device("a", true), device("b", false)]);
    node.wait_counts(GPU, (2, 1)).await;
    plugin.send(vec![]);
    node.wait_counts(GPU, (0, 0)).await;
    plugin.send(devices(&["a", "b", "c"]));
    node.wait_counts(GPU, (3, 3)).await;
}

#[rstest]
#[case(
    "v1alpha",
    GPU,
    "requested API version \"v1alpha\" is not supported by kubelet. Supported version is [\"v1beta1\"]"
)]
#[case("v1beta1", "gpu", "the ResourceName \"gpu\" is invalid")]
#[case(
    "v1beta1",
    "x.kubernetes.io/gpu",
    "the ResourceName \"x.kubernetes.io/gpu\" is invalid"
)]
#[tokio::test]
async fn refuses_what_is_not_a_registration(
    #[case] version: &str,
    #[case] resource: &str,
    #[case] message: &str,
) {
    let node = Node::new().await;
    let _plugin = Plugin::simple(node.kubelet.plugin_dir(), "p", devices(&["a"]));
    let answer = register(node.kubelet.plugin_dir(), version, resource, "p").await;
    let status = answer.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unknown, message));
    let outcome = &node.kubelet.registrations()[0].outcome;
    assert_eq!(*outcome, RegistrationOutcome::Refused(message.to_owned()));
    assert!(node.kubelet.node_status().is_empty());
}

#[tokio::test]
async fn register_fails_when_the_plugin_cannot_be_dialled() {
    let node = Node::with(|settings| settings.dial = Duration::from_millis(300)).await;
    let answer = register(node.kubelet.plugin_dir(), "v1beta1", GPU, "nobody").await;
    let message = answer.unwrap_err().message().to_owned();
    assert!(
        message.starts_with("failed to dial device plugin"),
        "{message}"
    );
    assert_eq!(node.counts(GPU), None);
}

#[tokio::test]
async fn the_dial_waits_for_a_plugin_that_listens_late() {
    let node = Node::new().await;
    let dir = node.kubelet.plugin_dir().to_owned();
    let late = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        Plugin::simple(&dir, "late", devices(&["a"]))
    };
    let (answer, _plugin) = tokio::join!(register(&dir, "v1beta1", GPU, "late"), late);
    answer.unwrap();
    node.wait_counts(GPU, (1, 1)).await;
}

#[tokio::test]
async fn register_fails_when_the_options_cannot_be_had() {
    let node = Node::new().await;
    let script = Script {
        options: Err(Status::internal("no")),
        ..Script::default()
    };
    let plugin = Plugin::serve(node.kubelet.plugin_dir(), "p", devices(&["a"]), script);
    let status = plugin.register(GPU).await.unwrap_err();
    assert_eq!(
        status.message(),
        "failed to get device plugin options: rpc error: code = Internal desc = no"
    );
    assert_eq!(plugin.calls.options.load(Ordering::SeqCst), 1);
    assert_eq!(plugin.calls.streams(), 0);
    assert_eq!(node.counts(GPU), None);
}

#[tokio::test]
async fn refuses_as_many_registrations_as_told() {
    let node = Node::new().await;
    node.kubelet.refuse_next(2, "not today");
    let plugin = Plugin::simple(node.kubelet.plugin_dir(), "p", devices(&["a"]));
    for _ in 0..2 {
        assert_eq!(
            plugin.register(GPU).await.unwrap_err().message(),
            "not today"
        );
    }
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (1, 1)).await;
}

#[tokio::test]
async fn a_stalled_registration_is_carried_out_though_the_caller_gave_up() {
    let node = Node::new().await;
    // Longer than a busy machine takes for the two lines that follow the call.
    node.kubelet.stall(Duration::from_secs(6));
    let plugin = Plugin::simple(node.kubelet.plugin_dir(), "p", devices(&["a"]));
    let early = timeout(Duration::from_millis(100), plugin.register(GPU)).await;
    assert!(early.is_err(), "answered early");
    assert_eq!(plugin.calls.options.load(Ordering::SeqCst), 0);
    node.wait_counts(GPU, (1, 1)).await;
}

#[tokio::test]
async fn a_stall_for_ever_ends_with_the_kubelet() {
    let node = Node::new().await;
    node.kubelet.stall(Duration::MAX);
    let plugin = Plugin::simple(node.kubelet.plugin_dir(), "p", devices(&["a"]));
    let stop = async {
        let arrived = |k: &sim::kubelet::Kubelet| k.registrations().len() == 1;
        node.kubelet
            .wait_until("a call", arrived, SOON)
            .await
            .unwrap();
        node.kubelet.stop_kubelet().await;
    };
    let (answer, ()) = timeout(SOON, async { tokio::join!(plugin.register(GPU), stop) })
        .await
        .unwrap();
    answer.unwrap_err();
    assert_eq!(
        node.kubelet.registrations()[0].outcome,
        RegistrationOutcome::Pending
    );
}

#[tokio::test]
async fn a_stream_that_ends_makes_all_unhealthy_and_is_never_opened_again() {
    let node = Node::with(|settings| settings.grace = Duration::from_secs(2)).await;
    let plugin = Plugin::simple(node.kubelet.plugin_dir(), "p", devices(&["a", "b"]));
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (2, 2)).await;
    plugin.end_streams();
    node.wait_counts(GPU, (2, 0)).await;
    // After the grace period the capacity is zero, and the name stays.
    node.wait_counts(GPU, (0, 0)).await;
    assert_eq!(plugin.calls.streams(), 1);
    assert_eq!(node.kubelet.registrations().len(), 1);
}

#[tokio::test]
async fn a_new_registration_within_the_grace_keeps_the_resource() {
    // Longer than a busy machine takes for a registration.
    let grace = Duration::from_secs(5);
    let node = Node::with(|settings| settings.grace = grace).await;
    let old = Plugin::simple(node.kubelet.plugin_dir(), "p-1", devices(&["a", "b"]));
    old.register(GPU).await.unwrap();
    node.wait_counts(GPU, (2, 2)).await;
    old.end_streams();
    node.wait_counts(GPU, (2, 0)).await;
    let new = Plugin::simple(node.kubelet.plugin_dir(), "p-2", devices(&["a", "b"]));
    new.register(GPU).await.unwrap();
    node.wait_counts(GPU, (2, 2)).await;
    tokio::time::sleep(grace + Duration::from_millis(500)).await;
    assert_eq!(node.counts(GPU), Some((2, 2)));
}

#[tokio::test]
async fn a_stream_that_fails_at_once_leaves_the_name_with_zeros() {
    let node = Node::new().await;
    let script = Script {
        list: Err(Status::internal("no")),
        ..Script::default()
    };
    let plugin = Plugin::serve(node.kubelet.plugin_dir(), "p", devices(&["a"]), script);
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (0, 0)).await;
    assert_eq!(plugin.calls.streams(), 1);
}

#[tokio::test]
async fn cutting_the_stream_takes_the_resource_out_and_tells_the_plugin() {
    let node = Node::new().await;
    let plugin = Plugin::simple(node.kubelet.plugin_dir(), "p", devices(&["a"]));
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (1, 1)).await;
    assert!(node.kubelet.cut_stream(GPU));
    node.wait_counts(GPU, (1, 0)).await;
    ended(&plugin, 1).await;
    assert!(!node.kubelet.cut_stream(GPU), "there is none left");
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (1, 1)).await;
}

#[tokio::test]
async fn a_forgotten_resource_is_gone_while_its_stream_stays_open() {
    let node = Node::new().await;
    let plugin = Plugin::simple(node.kubelet.plugin_dir(), "p-1", devices(&["a"]));
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (1, 1)).await;
    assert!(node.kubelet.forget_resource(GPU));
    assert_eq!(node.counts(GPU), Some((0, 0)));

    plugin.send(devices(&["a", "b"]));
    let heard = |k: &sim::kubelet::Kubelet| k.device_lists(GPU).len() == 2;
    node.kubelet
        .wait_until("the list", heard, SOON)
        .await
        .unwrap();
    assert_eq!(node.counts(GPU), Some((0, 0)), "the list is not heeded");
    assert_eq!(plugin.calls.ended(), 0, "the stream stays open");

    let again = Plugin::simple(node.kubelet.plugin_dir(), "p-2", devices(&["a"]));
    again.register(GPU).await.unwrap();
    node.wait_counts(GPU, (1, 1)).await;
    drop(plugin);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(node.counts(GPU), Some((1, 1)), "the old stream is nobody's");
}

#[tokio::test]
async fn a_list_over_four_mebibytes_ends_the_stream() {
    let node = Node::new().await;
    let plugin = Plugin::simple(node.kubelet.plugin_dir(), "p", devices(&["a"]));
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (1, 1)).await;
    let long = "x".repeat(1000);
    plugin.send(
        (0..5000)
            .map(|n| device(&format!("{n}-{long}"), true))
            .collect(),
    );
    node.wait_counts(GPU, (1, 0)).await;
    let violations = node.kubelet.violations();
    let large =
        |breach: &Breach| matches!(breach, Breach::MessageTooLarge(size) if *size > 4 << 20);
    assert!(
        violations.len() == 1 && large(&violations[0].breach),
        "{violations:?}"
    );
}

#[rstest]
#[case::twice(devices(&["a", "a"]), "device a is listed twice")]
#[case::no_id(devices(&[""]), "a device without an id is listed")]
#[case::negative(vec![on("a", &[-1])], "device a is on NUMA node -1")]
#[case::no_node(vec![on("a", &[])], "device a has a topology without a node")]
#[case::health(vec![Device { health: "healthy".into(), ..device("a", true) }], "device a has health \"healthy\"")]
#[tokio::test]
async fn notes_what_is_wrong_with_a_list(#[case] list: Vec<Device>, #[case] breach: &str) {
    let node = Node::new().await;
    let plugin = Plugin::simple(node.kubelet.plugin_dir(), "p", list);
    plugin.register(GPU).await.unwrap();
    let listed = |k: &sim::kubelet::Kubelet| !k.device_lists(GPU).is_empty();
    node.kubelet
        .wait_until("a list", listed, SOON)
        .await
        .unwrap();
    assert_eq!(node.breaches(), [format!("{GPU}: {breach}")]);
}

#[tokio::test]
async fn notes_a_socket_name_that_was_used_before() {
    let node = Node::new().await;
    let plugin = Plugin::simple(node.kubelet.plugin_dir(), "p", devices(&["a"]));
    plugin.register(GPU).await.unwrap();
    plugin.register(NIC).await.unwrap();
    let expected = format!("{NIC}: socket name p was used before");
    assert_eq!(node.breaches(), [expected]);
}

#[tokio::test]
async fn notes_registrations_that_follow_each_other_too_soon() {
    let node = Node::new().await;
    let dir = node.kubelet.plugin_dir();
    // Refused registrations count as well. Each resource counts by itself.
    let (one, two, other) = tokio::join!(
        register(dir, "v0", GPU, "p-1"),
        register(dir, "v0", GPU, "p-2"),
        register(dir, "v0", NIC, "p-3"),
    );
    assert!(one.is_err() && two.is_err() && other.is_err());
    let violations = node.kubelet.violations();
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert_eq!(violations[0].resource, GPU);
    assert!(matches!(violations[0].breach, Breach::RegisteredTooSoon(_)));
}

#[tokio::test]
async fn notes_an_endpoint_that_is_not_a_file_name() {
    let node = Node::with(|settings| settings.dial = Duration::from_millis(50)).await;
    let dir = node.kubelet.plugin_dir();
    register(dir, "v1beta1", GPU, "../p").await.unwrap_err();
    let expected = format!("{GPU}: endpoint \"../p\" is not a file name");
    assert_eq!(node.breaches(), [expected]);
}

#[tokio::test]
async fn a_wait_in_vain_tells_what_was_there() {
    let node = Node::new().await;
    let plugin = Plugin::simple(
        node.kubelet.plugin_dir(),
        "p",
        vec![device("a", true), device("b", false)],
    );
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (2, 1)).await;
    let short = Duration::from_millis(10);
    let error = node.kubelet.wait_healthy(GPU, 2, short).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "not within 10ms: 2 healthy devices of example.com/gpu; at the end: 2 devices, unhealthy [\"b\"]"
    );
}

#[tokio::test]
async fn options_are_asked_once_per_registration_whatever_the_request_says() {
    let node = Node::new().await;
    let script = Script {
        options: Ok(DevicePluginOptions {
            pre_start_required: true,
            ..Default::default()
        }),
        ..Script::default()
    };
    let plugin = Plugin::serve(node.kubelet.plugin_dir(), "p", devices(&["a"]), script);
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (1, 1)).await;
    assert_eq!(plugin.calls.options.load(Ordering::SeqCst), 1);
    assert_eq!(plugin.calls.streams(), 1);
}

/// Waits until `count` streams of the plugin have ended.
pub(crate) async fn ended(plugin: &Plugin, count: usize) {
    let ended = async {
        while plugin.calls.ended() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, ended).await.expect("the stream ends");
}
