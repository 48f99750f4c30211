//! CDI specs: complete at all times, and on the disk before the kubelet gets the ids that need them.

mod boards;

use std::{collections::BTreeSet, path::PathBuf};

use cdi::CdiSpec;
use rstest::rstest;
use serde_json::{Value, json};
use sim::kubelet::{Era, GrantedDevices, Kubelet, KubeletSettings, PluginDevices, Pod};

use crate::rig::{DGX, GPU, LONG, MIG, QUICK, Rig, Running, card, eventually};

/// Config in which devices are named by CDI alone.
const CRI: &str = "handover: {lists: [cdi-cri]}\nprobe: {period: 500ms}\n";
const ANNOTATIONS: &str = "handover: {lists: [cdi-annotations]}\n";
const BOTH: &str = "handover: {lists: [envvar, cdi-annotations, cdi-cri]}\n";
const AUTO: &str = "handover: {lists: [auto]}\n";

const KIND: &str = "k8s.device-plugin.nvidia.com/gpu";

fn file(rig: &Rig) -> PathBuf {
    rig.cdi_dir().join("k8s.device-plugin.nvidia.com-gpu.json")
}

/// Reads the spec from the disk, if it is there. A spec that does not parse fails the test.
fn spec(rig: &Rig) -> Option<CdiSpec> {
    let text = fs_err::read_to_string(file(rig)).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

fn names(rig: &Rig) -> BTreeSet<String> {
    let spec = spec(rig);
    spec.iter().flat_map(CdiSpec::qualified_names).collect()
}

fn cdi(granted: &GrantedDevices) -> Vec<String> {
    let devices = granted.response.cdi_devices.iter();
    devices.map(|device| device.name.clone()).collect()
}

/// Starts a kubelet and an agent, and waits for the first list.
async fn first(rig: Rig, config: &str) -> Running {
    let kubelet = rig.kubelet(Era::V1_37).await;
    let agent = rig.agent(config);
    let there = |devices: &PluginDevices| !devices.is_empty();
    kubelet.wait_devices(GPU, there, LONG).await.unwrap();
    Running {
        agent,
        kubelet,
        rig,
    }
}

/// True if the CDI part of the status page has this text.
fn told(status: &Value, what: &str) -> bool {
    status["cdi"].to_string().contains(what)
}

#[rstest]
#[case::cri(CRI)]
#[case::annotations(ANNOTATIONS)]
#[case::both(BOTH)]
#[tokio::test]
async fn the_spec_is_there_before_the_first_list(#[case] config: &str) {
    let running = first(Rig::new(DGX), config).await;
    let there = names(&running.rig);
    for id in running.ids(GPU) {
        assert!(there.contains(&format!("{KIND}={id}")), "{id}: {there:?}");
    }
    running.offers(&[(GPU, 8)]).await;
    let lists = running.kubelet.device_lists(GPU);
    let healthy =
        |list: &sim::kubelet::DeviceList| list.devices.iter().all(|d| d.health == "Healthy");
    assert!(lists.iter().all(healthy), "{lists:?}");
}

#[tokio::test]
async fn what_a_container_is_given_is_in_the_spec() {
    let running = Running::start(DGX, CRI).await;
    for count in [1, 2] {
        let granted = running.admit(GPU, count).await.unwrap();
        let given = cdi(&granted);
        assert_eq!(given.len(), count);
        let there = names(&running.rig);
        assert!(given.iter().all(|name| there.contains(name)), "{given:?}");
        assert!(granted.response.devices.is_empty(), "the spec has them");
        assert!(granted.response.envs.is_empty());
    }
    let spec = spec(&running.rig).unwrap();
    let libraries = spec.container_edits.mounts.iter();
    let cuda = libraries.filter(|mount| mount.container_path.contains("libcuda.so"));
    assert!(cuda.count() > 0, "the driver's files are in it");
}

#[tokio::test]
async fn partitions_that_come_and_go_come_and_go_in_the_spec() {
    const NEW: &str = "nvidia.com/mig-1g.10gb";
    let running = Running::start(MIG, CRI).await;
    let made = running.rig.node.add_mig(&card(6), "1g.10gb").unwrap();
    let listed = |devices: &PluginDevices| !devices.is_empty();
    running
        .kubelet
        .wait_devices(NEW, listed, LONG)
        .await
        .unwrap();
    let name = format!("{KIND}={}", made[0]);
    assert!(names(&running.rig).contains(&name));
    let granted = running.admit(NEW, 1).await.unwrap();
    assert_eq!(cdi(&granted), [name.as_str()]);
    let target = sim::DeviceTarget::Uuid(made[0].clone());
    running.rig.node.remove_mig(&target).unwrap();
    eventually("the name goes", || !names(&running.rig).contains(&name)).await;
}

#[tokio::test]
async fn a_lost_card_keeps_its_name() {
    let running = Running::start(DGX, CRI).await;
    let (id, before) = (running.rig.uuid(2), spec(&running.rig).unwrap());
    running.rig.node.lose_cards(&card(2)).unwrap();
    running.sick(GPU, &[&id]).await;
    let after = spec(&running.rig).unwrap();
    assert_eq!(after.find_device(&id), before.find_device(&id));
}

#[tokio::test]
async fn a_spec_that_is_removed_comes_back_and_outlives_the_agent() {
    let running = Running::start(DGX, CRI).await;
    let right = fs_err::read_to_string(file(&running.rig)).unwrap();
    fs_err::remove_file(file(&running.rig)).unwrap();
    let is_right = |rig: &Rig| fs_err::read_to_string(file(rig)).is_ok_and(|text| text == right);
    eventually("the spec is back", || is_right(&running.rig)).await;
    let Running {
        agent,
        kubelet,
        rig,
    } = running;
    drop(agent);
    assert!(is_right(&rig), "containers restart without an agent");
    // A reboot empties /var/run/cdi, which is in a tmpfs.
    fs_err::remove_dir_all(rig.cdi_dir()).unwrap();
    let agent = rig.agent(CRI);
    eventually("the spec is back", || is_right(&rig)).await;
    drop((agent, kubelet));
}

#[tokio::test]
async fn a_foreign_file_is_reported_and_its_devices_are_not_handed_out() {
    let rig = Rig::new(DGX);
    fs_err::create_dir(rig.cdi_dir()).unwrap();
    fs_err::write(file(&rig), "somebody's").unwrap();
    let running = first(rig, CRI).await;
    let all = running.ids(GPU);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    running.sick(GPU, &all).await;
    running
        .agent
        .says("the file is named", |s| told(s, "left alone"))
        .await;
    assert_eq!(
        fs_err::read_to_string(file(&running.rig)).unwrap(),
        "somebody's"
    );
    fs_err::remove_file(file(&running.rig)).unwrap();
    running.offers(&[(GPU, 8)]).await;
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_named() {
    let rig = Rig::new(DGX);
    // A file in the place of the folder: missing permissions would not stop root.
    fs_err::write(rig.cdi_dir(), "").unwrap();
    let running = first(rig, CRI).await;
    let all = running.ids(GPU);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    running.sick(GPU, &all).await;
    let dir = running.rig.cdi_dir().display().to_string();
    running.agent.says("the folder", |s| told(s, &dir)).await;
    running
        .agent
        .says("the reason", |s| told(s, "os error 17"))
        .await;
}

/// Node on which the agent can read containerd's config.
fn with_containerd(config: &str) -> Rig {
    let rig = Rig::new(DGX);
    let folder = rig.node.host_root().join("etc/containerd");
    fs_err::create_dir_all(&folder).unwrap();
    let table = "[plugins.\"io.containerd.cri.v1.runtime\"]";
    let specs = format!(
        "{config}{table}\ncdi_spec_dirs = [\"{}\"]\n",
        rig.cdi_dir().display()
    );
    // The folder of specs must be the one that the agent writes, or `auto` does not use CDI.
    fs_err::write(folder.join("config.toml"), specs).unwrap();
    rig
}

/// Writes the kubelet's `dra_manager_state` into its root folder, with this API group.
fn claims(rig: &Rig, group: &str) {
    let root = rig.kubelet_dir().parent().unwrap().to_owned();
    let data = json!({ "kind": "DRACheckpoint", "apiVersion": format!("{group}/v1") });
    let state = json!({ "Data": data.to_string(), "Checksum": 1 });
    fs_err::write(root.join("dra_manager_state"), state.to_string()).unwrap();
}

const GROUP: &str = "checkpoint.dra.kubelet.k8s.io";

#[rstest]
#[case::all_is_new("version = 3\n", GROUP, true, "config.toml")]
#[case::old_runtime("version = 2\n", GROUP, false, "config.toml")]
#[case::old_kubelet(
    "version = 3\n",
    "other",
    false,
    "dra_manager_state is not in the form"
)]
#[tokio::test]
async fn auto_goes_by_the_runtimes_config_and_the_kubelets_files(
    #[case] config: &str,
    #[case] group: &str,
    #[case] by_cdi: bool,
    #[case] why: &str,
) {
    let rig = with_containerd(config);
    claims(&rig, group);
    let kubelet = Kubelet::start_kubelet(KubeletSettings::new(rig.kubelet_dir()))
        .await
        .unwrap();
    let agent = rig.agent(AUTO);
    let running = Running {
        agent,
        kubelet,
        rig,
    };
    running.offers(&[(GPU, 8)]).await;
    let explained = |s: &Value| s["cdi"]["lists"].to_string().contains(why);
    running.agent.says("why", explained).await;
    let granted = running.admit(GPU, 1).await.unwrap();
    assert_eq!(cdi(&granted).is_empty(), !by_cdi);
    let variable = "NVIDIA_VISIBLE_DEVICES";
    assert_eq!(granted.response.envs.contains_key(variable), !by_cdi);
    assert_eq!(granted.response.devices.is_empty(), by_cdi);
}

#[tokio::test]
async fn a_reload_brings_the_spec_and_takes_it_away_when_no_container_is_left() {
    let running = Running::start(DGX, QUICK).await;
    assert!(!running.rig.cdi_dir().exists());
    running.rewrite(CRI);
    eventually("the spec comes", || file(&running.rig).exists()).await;
    running.offers(&[(GPU, 8)]).await;
    let pod = Pod::new("default", "old").with_container("main", [(GPU, 1)]);
    let old = running.kubelet.admit_pod(pod).await.unwrap();
    let given = cdi(&old.containers["main"]);
    assert_eq!(given.len(), 1);
    running.rewrite(QUICK);
    let names_left = |s: &Value| s["cdi"]["lists"].as_array().is_some_and(Vec::is_empty);
    running.agent.says("no pool uses CDI", names_left).await;
    assert!(cdi(&running.admit(GPU, 1).await.unwrap()).is_empty());
    // As after a reboot: the kubelet restarts the container with the CDI names of its checkpoint.
    fs_err::rename(running.rig.cdi_dir(), running.rig.path("gone")).unwrap();
    eventually("the spec is back", || {
        given.iter().all(|name| names(&running.rig).contains(name))
    })
    .await;
    let Running {
        agent,
        kubelet,
        rig,
    } = running;
    drop(agent);
    let agent = rig.agent(QUICK);
    let holds = |s: &Value| s["cdi"]["containers"] == 1;
    agent.says("it is held", holds).await;
    assert!(names(&rig).contains(&given[0]));
    kubelet.remove_pod(&old.pod);
    eventually("the spec goes", || !file(&rig).exists()).await;
}

#[tokio::test]
async fn a_reload_to_cdi_and_back_takes_no_device_away() {
    let running = Running::start(DGX, QUICK).await;
    let told = |snapshot: &api::DevicePage| {
        let mut backends = snapshot.backends.iter();
        backends.any(|backend| backend.extras.files.is_some())
    };
    running.agent.shows("the driver's files", told).await;
    let uses = |used: usize| {
        move |s: &Value| {
            s["cdi"]["lists"]
                .as_array()
                .is_some_and(|l| l.len() == used)
        }
    };
    for _ in 0..3 {
        running.rewrite(&format!("{QUICK}handover: {{lists: [cdi-cri]}}\n"));
        running.agent.says("CDI is used", uses(1)).await;
        assert!(file(&running.rig).exists());
        running.rewrite(QUICK);
        running.agent.says("it is not", uses(0)).await;
    }
    running.offers(&[(GPU, 8)]).await;
    let lists = running.kubelet.device_lists(GPU);
    let full = |list: &sim::kubelet::DeviceList| {
        list.devices.len() == 8 && list.devices.iter().all(|d| d.health == "Healthy")
    };
    assert!(lists.iter().all(full), "{lists:?}");
    assert_eq!(running.breaches(), [""; 0]);
}
