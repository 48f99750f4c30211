//! Tests of the pod resources API.

use kubelet_api::podresources::{
    AllocatableResourcesRequest, ContainerDevices, GetPodResourcesRequest, ListPodResourcesRequest,
    pod_resources_lister_client::PodResourcesListerClient,
};
use sim::kubelet::Pod;
use tokio::task::JoinSet;
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint},
};

use crate::{
    GPU, Node,
    plugin::{Plugin, device, on},
};

type Client = PodResourcesListerClient<Channel>;

async fn client(node: &Node) -> Client {
    let socket = format!("unix:{}", node.dir.path().join("pods.sock").display());
    let channel = Endpoint::from_shared(socket).unwrap().connect().await;
    PodResourcesListerClient::new(channel.unwrap())
}

async fn ready(node: &Node) -> Plugin {
    let list = vec![on("a", &[0]), device("b", true), device("c", false)];
    let plugin = Plugin::simple(node.kubelet.plugin_dir(), "p", list);
    plugin.register(GPU).await.unwrap();
    node.wait_counts(GPU, (3, 2)).await;
    plugin
}

/// Resource, ids and NUMA nodes of each entry.
fn rows(devices: &[ContainerDevices]) -> Vec<(&str, Vec<&str>, Vec<i64>)> {
    let row = |row: &'_ ContainerDevices| {
        let nodes = row.topology.iter().flat_map(|topology| &topology.nodes);
        nodes.map(|node| node.id).collect()
    };
    devices
        .iter()
        .map(|d| {
            let ids = d.device_ids.iter().map(String::as_str).collect();
            (d.resource_name.as_str(), ids, row(d))
        })
        .collect()
}

async fn allocatable(client: &mut Client) -> Vec<ContainerDevices> {
    let answer = client.get_allocatable_resources(AllocatableResourcesRequest {});
    answer.await.unwrap().into_inner().devices
}

#[tokio::test]
async fn allocatable_are_the_healthy_devices_in_use_or_not() {
    let node = Node::new().await;
    let mut client = client(&node).await;
    assert!(allocatable(&mut client).await.is_empty());
    let plugin = ready(&node).await;
    let pod = Pod::new("default", "p").with_container("c", [(GPU, 1)]);
    node.kubelet.admit_pod(pod).await.unwrap();
    let found = allocatable(&mut client).await;
    assert_eq!(
        rows(&found),
        [(GPU, vec!["a"], vec![0]), (GPU, vec!["b"], vec![])]
    );
    plugin.end_streams();
    node.wait_counts(GPU, (3, 0)).await;
    assert!(allocatable(&mut client).await.is_empty());
}

#[tokio::test]
async fn a_forgotten_resource_is_not_allocatable() {
    let node = Node::new().await;
    let _plugin = ready(&node).await;
    let mut client = client(&node).await;
    assert_eq!(allocatable(&mut client).await.len(), 2);
    node.kubelet.forget_resource(GPU);
    assert!(allocatable(&mut client).await.is_empty());
}

#[tokio::test]
async fn the_list_shows_each_lasting_container_with_its_devices() {
    let node = Node::new().await;
    let _plugin = ready(&node).await;
    let pod = Pod::new("team", "p")
        .with_init("fetch", [(GPU, 1)])
        .sidecar("log", [])
        .with_container("main", [(GPU, 2)]);
    let admitted = node.kubelet.admit_pod(pod).await.unwrap();
    let mut client = client(&node).await;
    let list = client.list(ListPodResourcesRequest {}).await.unwrap();
    let pods = list.into_inner().pod_resources;
    assert_eq!(pods.len(), 1);
    assert_eq!((&pods[0].namespace[..], &pods[0].name[..]), ("team", "p"));
    let names: Vec<_> = pods[0].containers.iter().map(|c| &c.name[..]).collect();
    assert_eq!(names, ["log", "main"]);
    assert_eq!(rows(&pods[0].containers[0].devices), []);
    assert_eq!(
        rows(&pods[0].containers[1].devices),
        [(GPU, vec!["a"], vec![0]), (GPU, vec!["b"], vec![])]
    );
    node.kubelet.remove_pod(&admitted.pod);
    let list = client.list(ListPodResourcesRequest {}).await.unwrap();
    assert!(list.into_inner().pod_resources.is_empty());
}

#[tokio::test]
async fn the_answer_is_the_same_before_and_after_a_restart() {
    let node = Node::new().await;
    let _plugin = ready(&node).await;
    let pod = Pod::new("team", "p").with_container("main", [(GPU, 2)]);
    node.kubelet.admit_pod(pod).await.unwrap();
    let mut before = client(&node).await;
    let before = before.list(ListPodResourcesRequest {}).await.unwrap();
    node.kubelet.restart_kubelet().await.unwrap();
    let mut after = client(&node).await;
    let after = after.list(ListPodResourcesRequest {}).await.unwrap();
    assert_eq!(before.into_inner(), after.into_inner());
}

#[tokio::test]
async fn one_pod_can_be_asked_for_and_an_unknown_one_is_an_error() {
    let node = Node::new().await;
    let _plugin = ready(&node).await;
    let pod = Pod::new("team", "p").with_container("main", [(GPU, 1)]);
    node.kubelet.admit_pod(pod).await.unwrap();
    let mut client = client(&node).await;
    let request = |namespace: &str| GetPodResourcesRequest {
        pod_name: "p".to_owned(),
        pod_namespace: namespace.to_owned(),
    };
    let found = client.get(request("team")).await.unwrap().into_inner();
    assert_eq!(found.pod_resources.unwrap().containers.len(), 1);
    let status = client.get(request("other")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unknown);
    assert_eq!(status.message(), "pod p in namespace other not found");
}

#[tokio::test]
async fn too_many_calls_are_rejected() {
    let node = Node::new().await;
    let client = client(&node).await;
    let mut calls = JoinSet::new();
    for _ in 0..1000 {
        let mut client = client.clone();
        calls.spawn(async move { client.list(ListPodResourcesRequest {}).await });
    }
    let answers = calls.join_all().await.into_iter();
    let rejected: Vec<_> = answers.filter_map(Result::err).collect();
    assert!(!rejected.is_empty() && rejected.len() < 1000);
    let exhausted = |status: &Status| status.code() == Code::ResourceExhausted;
    assert!(rejected.iter().all(exhausted), "{:?}", rejected[0]);
}
