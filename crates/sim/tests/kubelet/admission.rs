//! Tests of admission: the devices of a pod, the calls to its plugins, and the reasons for a
//! rejection.

use std::{collections::BTreeSet, time::Duration};

use kubelet_api::deviceplugin::{
    CdiDevice, ContainerAllocateResponse, DevicePluginOptions, DeviceSpec, Mount,
};
use rstest::rstest;
use sim::kubelet::{AdmissionError, Pod};
use tokio::time::timeout;
use tonic::Status;

use crate::{
    GPU, NIC, Node, SOON,
    plugin::{Plugin, Script, device, devices, env},
};

async fn ready(node: &Node, ids: &[&str], script: Script) -> Plugin {
    let plugin = Plugin::serve(node.kubelet.plugin_dir(), "gpu.sock", devices(ids), script);
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (ids.len(), ids.len())).await;
    plugin
}

fn pod(name: &str, count: usize) -> Pod {
    Pod::new("default", name).with_container("main", [(GPU, count)])
}

fn set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(ToString::to_string).collect()
}

async fn rejected(node: &Node, pod: Pod) -> String {
    let error = node.kubelet.admit_pod(pod).await.unwrap_err();
    assert!(matches!(error, AdmissionError::Unexpected(_)), "{error}");
    error.to_string()
}

#[tokio::test]
async fn a_container_gets_what_it_asked_for_by_one_call() {
    let node = Node::new().await;
    let plugin = ready(&node, &["a", "b", "c"], Script::default()).await;
    let admitted = node.kubelet.admit_pod(pod("p", 2)).await.unwrap();
    let granted = &admitted.containers["main"];
    assert_eq!(granted.devices[GPU], set(&["a", "b"]));
    let mut told: Vec<_> = granted.response.envs["IDS"].split(',').collect();
    told.sort_unstable();
    assert_eq!(told, ["a", "b"]);
    assert_eq!(plugin.calls.allocated(), [["a", "b"]]);
    let allocations = node.kubelet.allocations();
    assert_eq!(allocations.len(), 1);
    assert_eq!(allocations[0].devices, set(&["a", "b"]));
    assert_eq!(allocations[0].pod, admitted.pod);
    assert_eq!(node.breaches(), [""; 0]);
}

#[tokio::test]
async fn each_container_and_resource_is_a_call_of_its_own() {
    let node = Node::new().await;
    let gpus = ready(&node, &["a", "b", "c"], Script::default()).await;
    let nics = Plugin::simple(node.kubelet.plugin_dir(), "nic.sock", devices(&["n"]));
    nics.register(NIC).await.unwrap();
    node.wait_counts(NIC, (1, 1)).await;
    let pod = Pod::new("default", "p")
        .with_container("one", [(GPU, 1), (NIC, 1)])
        .with_container("two", [(GPU, 2), (NIC, 0)]);
    let admitted = node.kubelet.admit_pod(pod).await.unwrap();
    assert_eq!(gpus.calls.allocated(), [vec!["a"], vec!["b", "c"]]);
    assert_eq!(nics.calls.allocated(), [["n"]]);
    assert_eq!(admitted.containers["one"].devices[NIC], set(&["n"]));
    assert!(!admitted.containers["two"].devices.contains_key(NIC));
}

#[tokio::test]
async fn the_plugins_preference_is_followed() {
    let node = Node::new().await;
    let script = Script::preferring(|_| Ok(vec!["d".into(), "b".into()]));
    let plugin = ready(&node, &["a", "b", "c", "d"], script).await;
    let admitted = node.kubelet.admit_pod(pod("p", 2)).await.unwrap();
    assert_eq!(admitted.containers["main"].devices[GPU], set(&["b", "d"]));
    let asked = plugin.calls.prefer.lock().unwrap().remove(0);
    let available: BTreeSet<_> = asked.available_device_ids.into_iter().collect();
    assert_eq!(available, set(&["a", "b", "c", "d"]));
    assert_eq!(asked.must_include_device_ids, [""; 0]);
    assert_eq!(asked.allocation_size, 2);
    assert_eq!(node.breaches(), [""; 0]);
}

#[tokio::test]
async fn the_plugin_is_not_asked_when_there_is_no_choice() {
    let node = Node::new().await;
    let script = Script::preferring(|_| Err(Status::internal("no")));
    let plugin = ready(&node, &["a", "b"], script).await;
    node.kubelet.admit_pod(pod("p", 2)).await.unwrap();
    assert!(plugin.calls.prefer.lock().unwrap().is_empty());
}

#[rstest]
#[case::too_few(&["c"], &["a", "c"], "1 devices instead of 2")]
#[case::too_many(&["b", "c", "d"], &["b", "c"], "3 devices instead of 2")]
#[case::foreign(&["d", "x"], &["a", "d"], "device x is not available")]
#[case::twice(&["d", "d"], &["a", "d"], "a device is named twice")]
#[tokio::test]
async fn a_bad_preference_is_made_up_for_and_noted(
    #[case] answer: &'static [&'static str],
    #[case] given: &[&str],
    #[case] breach: &str,
) {
    let node = Node::new().await;
    let script = Script::preferring(|_| Ok(answer.iter().map(ToString::to_string).collect()));
    let _plugin = ready(&node, &["a", "b", "c", "d"], script).await;
    let admitted = node.kubelet.admit_pod(pod("p", 2)).await.unwrap();
    assert_eq!(admitted.containers["main"].devices[GPU], set(given));
    let expected = format!("{GPU}: GetPreferredAllocation: {breach}");
    assert_eq!(node.breaches(), [expected]);
}

#[tokio::test]
async fn a_failing_preference_rejects_the_pod() {
    let node = Node::new().await;
    let script = Script::preferring(|_| Err(Status::internal("lost a card")));
    let _plugin = ready(&node, &["a", "b"], script).await;
    assert_eq!(
        rejected(&node, pod("p", 1)).await,
        "Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: \
         rpc error: code = Internal desc = lost a card, which is unexpected"
    );
}

#[tokio::test]
async fn too_few_devices_reject_the_pod_with_both_numbers() {
    let node = Node::new().await;
    let plugin = ready(&node, &["a", "b", "c"], Script::default()).await;
    node.kubelet.admit_pod(pod("first", 1)).await.unwrap();
    plugin.send(vec![
        device("a", true),
        device("b", true),
        device("c", false),
    ]);
    node.wait_counts(GPU, (3, 2)).await;
    assert_eq!(
        rejected(&node, pod("second", 2)).await,
        "Allocate failed due to requested number of devices unavailable for example.com/gpu. \
         Requested: 2, Available: 1, which is unexpected"
    );
    node.kubelet.admit_pod(pod("second", 1)).await.unwrap();
}

#[tokio::test]
async fn unknown_and_unhealthy_resources_reject_the_pod() {
    let node = Node::new().await;
    assert_eq!(
        rejected(&node, pod("p", 1)).await,
        "Allocate failed due to cannot allocate unregistered device example.com/gpu, \
         which is unexpected"
    );
    let plugin = ready(&node, &["a"], Script::default()).await;
    plugin.end_streams();
    node.wait_counts(GPU, (1, 0)).await;
    assert_eq!(
        rejected(&node, pod("p", 1)).await,
        "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices \
         example.com/gpu, which is unexpected"
    );
}

#[tokio::test]
async fn a_failing_allocate_rejects_the_pod_and_frees_what_it_had() {
    let node = Node::new().await;
    let script = Script {
        allocate: Box::new(|ids| match ids.len() {
            2 => Err(Status::failed_precondition("b is lost")),
            _ => Ok(vec![env("OK", "1")]),
        }),
        ..Script::default()
    };
    let _plugin = ready(&node, &["a", "b", "c"], script).await;
    let pod = Pod::new("default", "p")
        .with_container("one", [(GPU, 1)])
        .with_container("two", [(GPU, 2)]);
    assert_eq!(
        rejected(&node, pod.clone()).await,
        "Allocate failed due to rpc error: code = FailedPrecondition desc = b is lost, \
         which is unexpected"
    );
    let three = Pod::new("default", "q").with_container("c", [(GPU, 3)]);
    node.kubelet.admit_pod(three).await.unwrap();
}

#[rstest]
#[case::none(0)]
#[case::two(2)]
#[tokio::test]
async fn another_number_of_responses_than_one_is_noted(#[case] count: usize) {
    let node = Node::new().await;
    let answers: Vec<_> = (0..count).map(|n| env("N", &n.to_string())).collect();
    let script = Script {
        allocate: Box::new(move |_| Ok(answers.clone())),
        ..Script::default()
    };
    let _plugin = ready(&node, &["a"], script).await;
    let admitted = node.kubelet.admit_pod(pod("p", 1)).await;
    match count {
        0 => assert_eq!(
            admitted.unwrap_err().to_string(),
            "Allocate failed due to no containers return in allocation response, which is unexpected"
        ),
        _ => assert_eq!(admitted.unwrap().containers["main"].response.envs["N"], "0"),
    }
    let expected = format!("{GPU}: Allocate answered with {count} container responses, not 1");
    assert_eq!(node.breaches(), [expected]);
}

#[tokio::test]
async fn init_containers_hand_their_devices_on() {
    let node = Node::new().await;
    let script = Script::preferring(|request| {
        let mut ids = request.must_include_device_ids.clone();
        let rest = request.available_device_ids.iter();
        let rest = rest.filter(|id| !request.must_include_device_ids.contains(id));
        let size = usize::try_from(request.allocation_size).unwrap();
        ids.extend(rest.take(size - ids.len()).cloned());
        Ok(ids)
    });
    let plugin = ready(&node, &["a", "b", "c", "d"], script).await;
    let pod = Pod::new("default", "p")
        .with_init("fetch", [(GPU, 2)])
        .with_container("one", [(GPU, 1)])
        .with_container("two", [(GPU, 2)]);
    let admitted = node.kubelet.admit_pod(pod).await.unwrap();
    let held = |name: &str| admitted.containers[name].devices[GPU].clone();
    assert!(held("one").is_subset(&held("fetch")));
    assert!(held("one").is_disjoint(&held("two")));
    assert_eq!(held("two").intersection(&held("fetch")).count(), 1);

    let asked = plugin.calls.prefer.lock().unwrap().clone();
    assert_eq!(asked.len(), 2, "one took only what was handed on");
    let must: BTreeSet<_> = asked[1].must_include_device_ids.iter().cloned().collect();
    assert_eq!(
        must,
        held("two").intersection(&held("fetch")).cloned().collect()
    );
    assert!(
        asked[1]
            .available_device_ids
            .iter()
            .any(|id| must.contains(id))
    );
    assert_eq!(asked[1].available_device_ids.len(), 3);
    assert_eq!(asked[1].allocation_size, 2);
    assert_eq!(node.breaches(), [""; 0]);
}

#[tokio::test]
async fn sidecars_keep_their_devices() {
    let node = Node::new().await;
    let _plugin = ready(&node, &["a", "b"], Script::default()).await;
    let pod = Pod::new("default", "p")
        .with_init("fetch", [(GPU, 1)])
        .sidecar("log", [(GPU, 1)])
        .with_container("main", [(GPU, 1)]);
    let admitted = node.kubelet.admit_pod(pod).await.unwrap();
    let held = |name: &str| admitted.containers[name].devices[GPU].clone();
    assert_eq!(held("fetch"), held("log"));
    assert!(held("main").is_disjoint(&held("log")));
}

#[tokio::test]
async fn answers_for_several_resources_are_merged_and_the_first_wins() {
    let node = Node::new().await;
    let answer = |owner: &str| ContainerAllocateResponse {
        envs: [("OWNER".into(), owner.into()), (owner.into(), "1".into())].into(),
        mounts: vec![Mount {
            container_path: "/m".into(),
            host_path: owner.into(),
            read_only: true,
        }],
        devices: vec![DeviceSpec {
            container_path: "/dev/x".into(),
            host_path: owner.into(),
            permissions: "rw".into(),
        }],
        annotations: [("note".into(), owner.into())].into(),
        cdi_devices: vec![
            CdiDevice {
                name: "v/c=all".into(),
            },
            CdiDevice { name: owner.into() },
        ],
    };
    let script = |answer: ContainerAllocateResponse| Script {
        allocate: Box::new(move |_| Ok(vec![answer.clone()])),
        ..Script::default()
    };
    let _gpus = ready(&node, &["a"], script(answer("gpu"))).await;
    let list = devices(&["n"]);
    let nics = Plugin::serve(
        node.kubelet.plugin_dir(),
        "nic",
        list,
        script(answer("nic")),
    );
    nics.register(NIC).await.unwrap();
    node.wait_counts(NIC, (1, 1)).await;
    let pod = Pod::new("default", "p").with_container("c", [(NIC, 1), (GPU, 1)]);
    let admitted = node.kubelet.admit_pod(pod).await.unwrap();
    let merged = &admitted.containers["c"].response;
    assert_eq!(merged.envs["OWNER"], "gpu");
    assert!(merged.envs.contains_key("gpu") && merged.envs.contains_key("nic"));
    assert_eq!(merged.mounts, answer("gpu").mounts);
    assert_eq!(merged.devices, answer("gpu").devices);
    assert_eq!(merged.annotations["note"], "gpu");
    let cdi: Vec<_> = merged.cdi_devices.iter().map(|d| &d.name[..]).collect();
    assert_eq!(cdi, ["v/c=all", "gpu", "nic"]);
}

#[tokio::test]
async fn a_restarted_container_gets_the_same_answer_without_a_call() {
    let node = Node::new().await;
    let plugin = ready(&node, &["a", "b"], Script::default()).await;
    let admitted = node.kubelet.admit_pod(pod("p", 1)).await.unwrap();
    plugin.send(vec![device("a", false), device("b", true)]);
    node.wait_counts(GPU, (2, 1)).await;
    let again = node.kubelet.restart_container(&admitted.pod, "main").await;
    assert_eq!(again.unwrap(), admitted.containers["main"]);
    assert_eq!(plugin.calls.allocated().len(), 1);
    let none = node.kubelet.restart_container(&admitted.pod, "other").await;
    assert!(matches!(none, Err(AdmissionError::Unknown { .. })));
}

#[tokio::test]
async fn pre_start_is_called_before_every_start_when_required() {
    let node = Node::new().await;
    let script = Script {
        options: Ok(DevicePluginOptions {
            pre_start_required: true,
            ..Default::default()
        }),
        ..Script::default()
    };
    let plugin = ready(&node, &["a", "b"], script).await;
    let admitted = node.kubelet.admit_pod(pod("p", 2)).await.unwrap();
    node.kubelet
        .restart_container(&admitted.pod, "main")
        .await
        .unwrap();
    assert_eq!(
        *plugin.calls.pre_start.lock().unwrap(),
        [["a", "b"], ["a", "b"]]
    );
}

#[tokio::test]
async fn a_failing_pre_start_keeps_the_pod_and_its_devices() {
    let node = Node::new().await;
    let script = Script {
        options: Ok(DevicePluginOptions {
            pre_start_required: true,
            ..Default::default()
        }),
        pre_start: Err(Status::internal("dirty")),
        ..Script::default()
    };
    let _plugin = ready(&node, &["a"], script).await;
    let error = node.kubelet.admit_pod(pod("p", 1)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "container main cannot start: device plugin PreStartContainer rpc failed with err: \
         rpc error: code = Internal desc = dirty"
    );
    rejected(&node, pod("q", 1)).await;
    assert!(node.kubelet.remove_pod(&pod("p", 1).pod_id()));
}

#[tokio::test]
async fn a_removed_pod_frees_its_devices() {
    let node = Node::new().await;
    let _plugin = ready(&node, &["a"], Script::default()).await;
    let admitted = node.kubelet.admit_pod(pod("p", 1)).await.unwrap();
    rejected(&node, pod("q", 1)).await;
    assert!(node.kubelet.remove_pod(&admitted.pod));
    assert!(!node.kubelet.remove_pod(&admitted.pod));
    node.kubelet.admit_pod(pod("q", 1)).await.unwrap();
    let twice = node.kubelet.admit_pod(pod("q", 1)).await.unwrap_err();
    assert_eq!(twice.to_string(), "pod default/q exists already");
}

#[tokio::test]
async fn a_hung_allocate_holds_up_every_pod_until_the_caller_gives_up() {
    let node = Node::new().await;
    let script = Script {
        hang_in_allocate: true,
        ..Script::default()
    };
    let plugin = ready(&node, &["a"], script).await;
    let short = Duration::from_millis(200);
    let empty = Pod::new("default", "empty").with_container("c", []);
    {
        let mut hung = Box::pin(node.kubelet.admit_pod(pod("p", 1)));
        let asked = async {
            while plugin.calls.allocated().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = &mut hung => panic!("answered"),
            asked = timeout(SOON, asked) => asked.unwrap(),
        }
        let behind = timeout(short, node.kubelet.admit_pod(empty.clone())).await;
        assert!(behind.is_err(), "a pod without devices waits as well");
    }
    let free = timeout(SOON, node.kubelet.admit_pod(empty)).await;
    free.unwrap().unwrap();
}

#[tokio::test]
async fn after_a_reboot_a_pod_needs_its_devices_healthy_again() {
    let node = Node::new().await;
    let plugin = ready(&node, &["a", "b"], Script::default()).await;
    let admitted = node.kubelet.admit_pod(pod("p", 1)).await.unwrap();
    node.kubelet.readmit_pod(&admitted.pod).await.unwrap();
    assert_eq!(
        plugin.calls.allocated().len(),
        1,
        "nothing is allocated again"
    );
    plugin.send(vec![device("a", false), device("b", true)]);
    node.wait_counts(GPU, (2, 1)).await;
    let error = node.kubelet.readmit_pod(&admitted.pod).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Allocate failed due to previously allocated devices are no longer healthy; \
         cannot allocate unhealthy devices example.com/gpu, which is unexpected"
    );
    assert!(
        !node.kubelet.remove_pod(&admitted.pod),
        "a failed pod is gone"
    );
}
