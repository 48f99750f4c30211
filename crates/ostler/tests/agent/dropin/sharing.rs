//! Sharing and resource names of NVIDIA's config file.

use std::collections::BTreeSet;

use sim::kubelet::PluginDevices;

use super::Plugin;
use crate::rig::{DGX, GPU, LONG, Running, unhealthy};

/// Profile of a server with four cards.
const FOUR: &str = "l40s-pcie";
/// Profile of a server with cards of two models.
const TWO_MODELS: &str = "mixed";

const SHARED: &str = "nvidia.com/gpu.shared";

/// Cards of these units.
fn cards(ids: &BTreeSet<String>) -> BTreeSet<String> {
    let card = |id: &String| id.split("::").next().unwrap_or_default().to_owned();
    ids.iter().map(card).collect()
}

fn all_cards(running: &Running) -> BTreeSet<String> {
    let gpus = running.rig.node.list_gpus().unwrap().into_iter();
    gpus.map(|gpu| gpu.uuid).collect()
}

#[tokio::test]
async fn time_slicing_makes_numbered_units_of_each_card() {
    let file = "version: v1
sharing:
  timeSlicing:
    resources:
    - {name: nvidia.com/gpu, replicas: 4}
";
    let running = Plugin::file(file).on(DGX).await;
    running.offers(&[(GPU, 32)]).await;
    let units = all_cards(&running)
        .into_iter()
        .flat_map(|card| (0..4).map(move |n| format!("{card}::{n}")));
    assert_eq!(running.ids(GPU), units.collect());

    // Two units are on two different cards, and the container gets the ids of cards.
    let granted = running.admit(GPU, 2).await.unwrap();
    let given = cards(&granted.devices[GPU]);
    assert_eq!(given.len(), 2);
    let named = granted.response.envs["NVIDIA_VISIBLE_DEVICES"].split(',');
    assert_eq!(named.map(str::to_owned).collect::<BTreeSet<_>>(), given);
    assert_eq!(running.breaches(), [""; 0]);
}

#[tokio::test]
async fn shared_cards_are_renamed_where_that_is_asked_for() {
    let file = "version: v1
sharing:
  timeSlicing:
    renameByDefault: true
    resources: [{name: nvidia.com/gpu, replicas: 2}]
";
    let running = Plugin::file(file).on(FOUR).await;
    running.offers(&[(SHARED, 8)]).await;
    assert_eq!(cards(&running.ids(SHARED)), all_cards(&running));
}

#[tokio::test]
async fn two_shares_for_one_container_are_refused_with_the_reason_where_one_is_the_most() {
    let file = "version: v1
sharing:
  timeSlicing:
    failRequestsGreaterThanOne: true
    resources: [{name: nvidia.com/gpu, replicas: 10}]
";
    let running = Plugin::file(file).on(FOUR).await;
    running.offers(&[(GPU, 40)]).await;
    let refused = running.admit(GPU, 2).await.unwrap_err().to_string();
    for word in [
        "2 of nvidia.com/gpu requested",
        "the maximum is 1",
        "failRequestsGreaterThanOne",
        "request 1",
    ] {
        assert!(refused.contains(word), "{word} in {refused}");
    }
    assert_eq!(running.borrow(GPU, 1).await.len(), 1);
}

#[tokio::test]
async fn one_card_is_shared_under_a_name_of_its_own_and_the_others_are_not() {
    let file = "version: v1
sharing:
  timeSlicing:
    resources:
    - {name: nvidia.com/gpu, replicas: 10, devices: [\"1\"], rename: nvidia.com/gpu-slice}
";
    let running = Plugin::file(file).on(FOUR).await;
    let slice = "nvidia.com/gpu-slice";
    running.offers(&[(GPU, 3), (slice, 10)]).await;
    let (whole, shared) = (running.ids(GPU), cards(&running.ids(slice)));
    assert_eq!(shared, BTreeSet::from([running.rig.uuid(1)]));
    assert!(whole.is_disjoint(&shared), "{whole:?}, {shared:?}");
    assert_eq!(whole.union(&shared).count(), 4);
}

#[tokio::test]
async fn each_model_has_the_name_of_its_pattern() {
    let file = "version: v1
resources:
  gpus:
  - {pattern: \"*T4*\", name: t4}
  - {pattern: \"NVIDIA A100*\", name: nvidia.com/a100}
";
    let running = Plugin::file(file).on(TWO_MODELS).await;
    running
        .offers(&[("nvidia.com/a100", 4), ("nvidia.com/t4", 2)])
        .await;
    let (t4, a100) = (running.ids("nvidia.com/t4"), running.ids("nvidia.com/a100"));
    let models = running.rig.node.list_gpus().unwrap();
    for gpu in models {
        let own = if gpu.name.contains("T4") { &t4 } else { &a100 };
        assert!(own.contains(&gpu.uuid), "{gpu:?}");
    }
}

#[tokio::test]
async fn an_edited_file_is_taken_over_in_place() {
    let file = |replicas: u32| {
        format!(
            "version: v1\nsharing:\n  timeSlicing:\n    resources: \
             [{{name: nvidia.com/gpu, replicas: {replicas}}}]\n"
        )
    };
    let running = Plugin::file(&file(2)).on(FOUR).await;
    running.offers(&[(GPU, 8)]).await;
    running.rewrite(&file(3));
    running.offers(&[(GPU, 12)]).await;
    running.rewrite("version: v1\n");
    running.offers(&[(GPU, 4)]).await;
    assert_eq!(running.kubelet.registrations().len(), 1);
    let status = running.agent.status().await.unwrap();
    assert_eq!(status["pid"], running.agent.pid());
}

#[tokio::test]
async fn shares_of_mps_wait_for_their_daemon() {
    let file = "version: v1
flags: {mpsRoot: /run/nvidia/mps}
sharing:
  mps:
    resources: [{name: nvidia.com/gpu, replicas: 2}]
";
    let running = Plugin::file(file).on(FOUR).await;
    let all = |devices: &PluginDevices| unhealthy(devices).len() == 8;
    running.kubelet.wait_devices(GPU, all, LONG).await.unwrap();
    let status = running.agent.status().await.unwrap();
    assert_eq!(status["notes"][0]["kind"], "waiting", "{status}");
    let log = running.agent.logged("is not handed out").await;
    let line = log.lines().find(|line| line.contains("is not handed out"));
    assert!(line.is_some_and(|line| line.contains("WARN")), "{log}");

    let started = running.rig.path("mps/nvidia.com/gpu/.started");
    fs_err::create_dir_all(started.parent().unwrap()).unwrap();
    fs_err::write(&started, "").unwrap();
    running.rig.nudge().await;
    running.offers(&[(GPU, 8)]).await;
    let granted = running.admit(GPU, 1).await.unwrap();
    let pipe = "/mps/nvidia.com/gpu/pipe";
    assert_eq!(granted.response.envs["CUDA_MPS_PIPE_DIRECTORY"], pipe);

    fs_err::remove_file(started).unwrap();
    running.rig.nudge().await;
    running.kubelet.wait_devices(GPU, all, LONG).await.unwrap();
}
