//! `ostler cdi` on simulated nodes: from the driver's files through the real probe to specs.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use cdi::{CdiSpec, SpecSeverity, check_spec};
use rstest::rstest;
use rules::ContainerNode;
use serde_json::{Value, json};
use sim::ScratchNode;

use crate::{ostler, text};

/// Node, and a folder for specs beside it.
struct Rig {
    node: ScratchNode,
}

impl Rig {
    fn new(profile: &str) -> Self {
        let node = ScratchNode::from_name(profile).unwrap();
        Self { node }
    }

    fn dir(&self) -> PathBuf {
        self.node.file_beside("cdi")
    }

    /// Runs `ostler cdi` on the node.
    fn cdi(&self, args: &[&str]) -> Output {
        let mut command = cdi(args);
        command.env("OSTLER_HOST_ROOT", self.node.host_root());
        if args[0] == "generate" {
            command.env("OSTLER_NVML_LIBRARY", self.node.driver_library());
        }
        command.output().unwrap()
    }

    /// Makes specs with these flags.
    fn specs(&self, flags: &[&str]) -> Vec<CdiSpec> {
        let dir = self.dir();
        let args = [&["generate", "-o", dir.to_str().unwrap()], flags].concat();
        let output = self.cdi(&args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let files = text(&output.stdout);
        files.lines().map(|file| read(Path::new(file))).collect()
    }
}

fn cdi(args: &[&str]) -> Command {
    ostler(&[&["cdi"], args].concat())
}

fn read(file: &Path) -> CdiSpec {
    let value: Value = serde_json::from_str(&fs_err::read_to_string(file).unwrap()).unwrap();
    assert_eq!(check_spec(&value), [], "{}", file.display());
    serde_json::from_value(value).unwrap()
}

#[test]
fn the_specs_of_every_profile_are_good_and_name_every_device() {
    for profile in sim::profile::names() {
        let rig = Rig::new(profile);
        let specs = rig.specs(&[]);
        let gpus = specs.iter().find(|spec| spec.kind_class() == "gpu");
        let gpus = gpus.unwrap_or_else(|| panic!("{profile} has no spec for gpus"));
        let wsl = gpus.find_device("all").is_some() && gpus.devices.len() == 1;
        for card in rig.node.list_gpus().unwrap().iter().filter(|_| !wsl) {
            assert!(
                gpus.find_device(&card.uuid).is_some(),
                "{profile}: {}",
                card.uuid
            );
        }
        for part in rig.node.list_migs().unwrap().iter().filter(|_| !wsl) {
            assert!(
                gpus.find_device(&part.uuid).is_some(),
                "{profile}: {}",
                part.uuid
            );
        }
        let dir = rig.dir();
        let output = rig.cdi(&["validate", dir.to_str().unwrap(), "-o", "json"]);
        let said = text(&output.stdout);
        assert!(output.status.success(), "{profile}: {said}");
        let report: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(
            report["problems"],
            json!([]),
            "{profile}: every file is there"
        );
    }
}

#[test]
fn a_spec_of_a_simulated_node_is_this() {
    let rig = Rig::new("t4");
    let specs = rig.specs(&[]);
    let spec = specs
        .iter()
        .find(|spec| spec.kind_class() == "gpu")
        .unwrap();
    insta::assert_snapshot!(spec.to_text());
}

/// Spec that NVIDIA's own plugin has written on the same simulated node.
fn upstream(profile: &str, case: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../bench/recordings")
        .join(profile)
        .join(case);
    let recording: Value = serde_json::from_str(&fs_err::read_to_string(file).unwrap()).unwrap();
    recording["cdi"]["k8s.device-plugin.nvidia.com-gpu.json"].clone()
}

/// Values of a key in a list of edits.
fn by(edits: &Value, list: &str, key: &str) -> BTreeSet<String> {
    let items = edits[list].as_array().into_iter().flatten();
    let values = items.filter_map(|item| item[key].as_str());
    values.map(ToOwned::to_owned).collect()
}

/// Arguments of the hooks after the program's name, with the links of all hooks together.
fn hooks(edits: &Value) -> BTreeSet<String> {
    let hooks = edits["hooks"].as_array().into_iter().flatten();
    let words = hooks.flat_map(|hook| hook["args"].as_array().unwrap());
    let words = words.filter_map(Value::as_str).map(ToOwned::to_owned);
    words.collect()
}

#[rstest]
#[case::cards("dgx-a100", "cdi-cri.json")]
#[case::mig("a100-mig", "cdi-mixed.json")]
#[case::graphics("l40s-pcie", "cdi-graphics.json")]
#[case::arm("gb200-nvl", "cdi-arm.json")]
fn what_nvidias_spec_has_ours_has(#[case] profile: &str, #[case] case: &str) {
    let theirs = upstream(profile, case);
    let specs = Rig::new(profile).specs(&[]);
    let spec = specs
        .iter()
        .find(|spec| spec.kind_class() == "gpu")
        .unwrap();
    let ours = serde_json::to_value(spec).unwrap();
    let devices = theirs["devices"].as_array().unwrap();
    assert!(!devices.is_empty());
    for device in devices {
        let name = device["name"].as_str().unwrap();
        let own = spec
            .find_device(name)
            .unwrap_or_else(|| panic!("no {name}"));
        let own = serde_json::to_value(&own.container_edits).unwrap();
        let edits = &device["containerEdits"];
        let nodes = |edits| by(edits, "deviceNodes", "path");
        assert_eq!(nodes(&own), nodes(edits), "{name}");
        assert_eq!(hooks(&own), hooks(edits), "{name}");
    }
    let (own, edits) = (&ours["containerEdits"], &theirs["containerEdits"]);
    assert_eq!(own["env"], edits["env"]);
    let nodes = |edits| by(edits, "deviceNodes", "path");
    assert_eq!(nodes(own), nodes(edits));
    // docs/nvidia.md has the additions of ours.
    let more = |list: fn(&Value) -> BTreeSet<String>| {
        let (own, edits) = (list(own), list(edits));
        assert!(edits.is_subset(&own), "{:?}", edits.difference(&own));
        own.difference(&edits).cloned().collect::<Vec<_>>()
    };
    let files = more(|edits| by(edits, "mounts", "containerPath"));
    let known = |file: &String| file.ends_with("/nvidia.icd") || file.contains("libnvidia-nvvm70");
    assert!(files.iter().all(known), "{files:?}");
    let words = more(hooks);
    let known = |word: &String| word.contains("::") && word.contains("libnvidia-egl-");
    assert!(words.iter().all(known), "{words:?}");
}

#[test]
fn roots_and_the_program_for_hooks_are_the_hosts() {
    let rig = Rig::new("dgx-a100");
    let root = "/run/nvidia/driver";
    let flags = [
        "--driver-root",
        root,
        "--dev-root",
        root,
        "--hook-path",
        "/opt/nvidia-ctk",
    ];
    let specs = rig.specs(&flags);
    let spec = specs
        .iter()
        .find(|spec| spec.kind_class() == "gpu")
        .unwrap();
    let edits = spec.devices.iter().map(|device| &device.container_edits);
    for edits in edits.chain([&spec.container_edits]) {
        for node in &edits.device_nodes {
            assert_eq!(
                node.host_path.as_deref(),
                Some(format!("{root}{}", node.path).as_str())
            );
        }
        for mount in &edits.mounts {
            assert!(mount.host_path.starts_with(root), "{mount:?}");
            assert!(!mount.container_path.starts_with(root), "{mount:?}");
        }
        assert!(
            edits
                .hooks
                .iter()
                .all(|hook| hook.path == "/opt/nvidia-ctk")
        );
    }
    assert!(!spec.container_edits.mounts.is_empty());
}

#[rstest]
#[case::json("json")]
#[case::yaml("yaml")]
fn a_management_spec_is_printed(#[case] format: &str) {
    let rig = Rig::new("dgx-a100");
    let output = rig.cdi(&["generate", "--management", "--format", format]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let file = rig.node.file_beside(&format!("spec.{format}"));
    fs_err::write(&file, &output.stdout).unwrap();
    let output = rig.cdi(&["list", file.to_str().unwrap(), "-o", "json"]);
    let rows: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(rows[0]["name"], "management.nvidia.com/gpu=all");
    let output = rig.cdi(&["validate", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stdout));
}

#[test]
fn a_config_says_what_is_in_the_specs() {
    let rig = Rig::new("dgx-a100");
    let config = rig.node.file_beside("ostler.yaml");
    fs_err::write(&config, "handover: {lists: [cdi-cri], ids: index}\n").unwrap();
    let specs = rig.specs(&["--config", config.to_str().unwrap()]);
    let names: Vec<String> = specs.iter().flat_map(CdiSpec::qualified_names).collect();
    assert_eq!(names.len(), 9, "{names:?}");
    assert!(names[0].ends_with("gpu=0"), "{names:?}");
}

#[test]
fn without_a_device_there_is_no_spec_and_a_reason() {
    let folder = sim::scratch().unwrap();
    let output = cdi(&["generate", "--host-root"])
        .arg(folder.path())
        .args(["--nvml-library", "/nowhere/libnvidia-ml.so.1"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    let said = text(&output.stderr);
    assert!(said.contains("/nowhere/libnvidia-ml.so.1"), "{said}");
    assert!(!said.contains("no file of the driver"), "{said}");
}

/// Makes the spec for cards with a config.
fn configured(rig: &Rig, said: &Value) -> CdiSpec {
    let config = rig.node.file_beside("ostler.yaml");
    fs_err::write(&config, said.to_string()).unwrap();
    let specs = rig.specs(&["--config", config.to_str().unwrap()]);
    let mut specs = specs.into_iter();
    specs.find(|spec| spec.kind_class() == "gpu").unwrap()
}

/// Device nodes of a spec: path in the container and path on the host.
fn places(spec: &CdiSpec) -> BTreeSet<(String, String)> {
    let edits = spec.devices.iter().map(|device| &device.container_edits);
    let edits = edits.chain([&spec.container_edits]);
    let nodes = edits.flat_map(|edits| &edits.device_nodes);
    let place = |node: &ContainerNode| {
        let host = node.host_path.clone().unwrap_or_else(|| node.path.clone());
        (node.path.clone(), host)
    };
    nodes.map(place).collect()
}

#[test]
fn a_node_is_where_it_was_found() {
    let rig = Rig::new("t4");
    let driver = rig.node.file_beside("driver");
    fs_err::create_dir_all(driver.join("dev")).unwrap();
    let said = json!({
        "backends": {"nvidia": {"devPath": driver}},
        "handover": {"lists": ["cdi-cri"], "nvidia": {"devRoot": "/run/nvidia/driver"}},
    });
    let at_home = places(&configured(&rig, &said));
    assert!(at_home.len() > 3, "{at_home:?}");
    assert!(
        at_home.iter().all(|(path, host)| path == host),
        "{at_home:?}"
    );

    for name in ["nvidia0", "nvidiactl"] {
        let node = rig.node.host_root().join("dev").join(name);
        fs_err::rename(node, driver.join("dev").join(name)).unwrap();
    }
    let there = places(&configured(&rig, &said));
    let moved = there.iter().filter(|(path, host)| path != host);
    let moved: Vec<&str> = moved.map(|(_, host)| host.as_str()).collect();
    let driver = "/run/nvidia/driver/dev";
    assert_eq!(
        moved,
        [format!("{driver}/nvidia0"), format!("{driver}/nvidiactl")]
    );
    assert_eq!(there.len(), at_home.len());
}

#[test]
fn links_that_the_host_lost_are_in_the_spec_by_the_names_in_the_libraries() {
    let rig = Rig::new("t4");
    let said = json!({"handover": {"lists": ["cdi-cri"]}});
    let links = |spec: &CdiSpec| hooks(&serde_json::to_value(&spec.container_edits).unwrap());
    let before = links(&configured(&rig, &said));
    let folder = rig.node.host_root().join("usr/lib/x86_64-linux-gnu");
    let mut lost = 0;
    for entry in fs_err::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_symlink() {
            fs_err::remove_file(entry.path()).unwrap();
            lost += 1;
        }
    }
    assert!(lost > 20);
    let after = links(&configured(&rig, &said));
    let gone: Vec<&String> = before.difference(&after).collect();
    // A library name without a version number is for building programs, not for running them.
    assert!(gone.iter().all(|link| link.ends_with(".so")), "{gone:?}");
    assert!(after.is_subset(&before), "{:?}", after.difference(&before));
    assert!(
        after
            .iter()
            .any(|link| link.ends_with("/libnvidia-encode.so.1"))
    );
    assert!(after.iter().any(|link| link.ends_with("/libcuda.so")));
}

#[rstest]
#[case::with_a_processor_of_nvidias("gb200-nvl", "true")]
#[case::of_the_usual_kind("dgx-a100", "false")]
fn cards_are_marked_where_the_flag_asks_for_it(#[case] profile: &str, #[case] coherent: &str) {
    let said = json!({
        "handover": {"lists": ["cdi-cri"]},
        "backends": {"nvidia": {"cdi": {"featureFlags": ["enable-coherent-annotations"]}}},
    });
    let spec = configured(&Rig::new(profile), &said);
    assert_eq!(spec.minimum_version(), "0.6.0");
    for device in spec.devices.iter().filter(|device| device.name != "all") {
        let note = device.annotations.get("gpu.nvidia.com/coherent");
        assert_eq!(note.map(String::as_str), Some(coherent), "{}", device.name);
    }
}

#[test]
fn names_are_listed_with_their_files() {
    let rig = Rig::new("t4");
    rig.specs(&[]);
    let dir = rig.dir();
    let output = rig.cdi(&["list", dir.to_str().unwrap()]);
    let page = text(&output.stdout).replace(dir.to_str().unwrap(), "CDI");
    insta::assert_snapshot!(page);
}

#[test]
fn validate_shows_everything_that_is_wrong_and_ends_with_1() {
    let folder = sim::scratch().unwrap();
    let spec = |kind: &str, edits: Value| {
        json!({"cdiVersion": "0.3.0", "kind": kind, "devices": [{"name": "a", "containerEdits": edits}]})
            .to_string()
    };
    let files = [
        ("a.json", spec("example.com/x", json!({"env": ["A=b"]}))),
        (
            "b.json",
            spec(
                "example.com/x",
                json!({"mounts": [{"hostPath": "/none", "containerPath": "/x"}]}),
            ),
        ),
        (
            "c.yaml",
            "cdiVersion: 0.3.0\nkind: x\ndevices: []\ncolour: red\n".to_owned(),
        ),
        ("d.json", "{".to_owned()),
        ("ignored.txt", "{".to_owned()),
    ];
    for (name, text) in &files {
        fs_err::write(folder.path().join(name), text).unwrap();
    }
    let here = |args: &[&str]| {
        let mut command = cdi(args);
        command.current_dir(folder.path()).output().unwrap()
    };
    let output = here(&["validate", "."]);
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(text(&output.stdout));
    let output = here(&["validate", ".", "-o", "json"]);
    let report: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(report["files"], 4);
    let severe = serde_json::to_value(SpecSeverity::Error).unwrap();
    let rows = report["problems"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["severity"] == severe), "{rows:?}");
}

#[test]
fn a_name_in_two_folders_is_a_warning() {
    let folder = sim::scratch().unwrap();
    let spec = r#"{"cdiVersion":"0.3.0","kind":"example.com/x","devices":[{"name":"a","containerEdits":{"env":["A=b"]}}]}"#;
    let dirs = ["static", "dynamic"].map(|dir| folder.path().join(dir));
    for dir in &dirs {
        fs_err::create_dir(dir).unwrap();
        fs_err::write(dir.join("x.json"), spec).unwrap();
    }
    let output = cdi(&["validate"]).args(&dirs).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let page = text(&output.stdout);
    assert!(page.contains("the later folder wins"), "{page}");
}

#[test]
fn the_config_says_where_the_host_is() {
    let rig = Rig::new("t4");
    let config = rig.node.file_beside("ostler.yaml");
    let said = json!({
        "hostRoot": rig.node.host_root(),
        "backends": {"nvidia": {
            "nvmlLibrary": rig.node.driver_library(),
            "cdi": {"hookPath": "/opt/nowhere/nvidia-ctk"},
        }},
        "handover": {"lists": ["cdi-cri"]},
    });
    fs_err::write(&config, said.to_string()).unwrap();
    let output = cdi(&["generate", "--config", config.to_str().unwrap()])
        .output()
        .unwrap();
    let notes = text(&output.stderr);
    assert!(output.status.success(), "{notes}");
    assert!(text(&output.stdout).contains("libcuda.so"), "{notes}");
    assert!(notes.contains("/opt/nowhere/nvidia-ctk"), "{notes}");
}

#[rstest]
#[case("wsl")]
#[case("tegra")]
fn a_spec_of_a_board_is_this(#[case] profile: &str) {
    let rig = Rig::new(profile);
    let output = rig.cdi(&["generate"]);
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "", "nothing is missed");
    insta::assert_snapshot!(profile, text(&output.stdout));
}

#[test]
fn a_board_that_does_not_tell_what_containers_need_is_told() {
    let rig = Rig::new("tegra");
    let folder = "etc/nvidia-container-runtime/host-files-for-container.d";
    fs_err::remove_dir_all(rig.node.host_root().join(folder)).unwrap();
    let output = rig.cdi(&["generate"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains(folder), "{said}");
    assert!(!said.contains("did not tell everything"), "{said}");
}

#[test]
fn a_place_that_is_not_there_is_no_empty_list() {
    let output = cdi(&["list", "/nonexistent"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/nonexistent"));
}
