//! Tests that have the published CDI crate read and apply the specs of every simulated node.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use container_device_interface::{
    cache::{Cache, new_cache},
    spec::{parse_spec, read_spec, validate_spec},
    spec_dirs::with_spec_dirs,
};
use oci_spec::runtime;
use serde_json::{Value, json};

/// Device node that every machine has.
const NODE: &str = "/dev/null";

fn ostler(args: &[&str]) -> String {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/debug/ostler");
    let program = std::env::var("OSTLER").unwrap_or_else(|_| default.to_owned());
    let output = Command::new(&program).args(args).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; build it first"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ostler {args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Names of the simulator's profiles: one for each file.
fn profiles() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sim/profiles");
    let files = std::fs::read_dir(folder).unwrap();
    let names = files.map(|file| file.unwrap().path());
    let names = names.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    names.filter(|name| name != "models").collect()
}

/// Writes the specs of a profile to a folder, with or without a program for hooks on the host.
fn generate(profile: &str, folder: &Path, hooks: bool) -> Vec<PathBuf> {
    let (node, dir) = (folder.join("node"), folder.join("cdi"));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    ostler(&["sim", "create", &path(&node), "--profile", profile]);
    let root = root(&node);
    if !hooks {
        for name in ["nvidia-ctk", "nvidia-cdi-hook"] {
            let _ = std::fs::remove_file(root.join("usr/bin").join(name));
        }
    }
    let library = library(&node);
    let files = ostler(&[
        "cdi",
        "generate",
        "-o",
        &path(&dir),
        "--host-root",
        &path(&root),
        "--nvml-library",
        &path(&library),
    ]);
    files.lines().map(PathBuf::from).collect()
}

/// Devices of a node, as its driver reports them.
fn devices(folder: &Path) -> Vec<Value> {
    let node = folder.join("node");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let said = ostler(&[
        "devices",
        "-o",
        "json",
        "--control-socket",
        &path(&folder.join("no.sock")),
        "--host-root",
        &path(&root(&node)),
        "--nvml-library",
        &path(&library(&node)),
    ]);
    let said: Value = serde_json::from_str(&said).unwrap();
    let entries = said["devices"].as_array().unwrap().iter();
    entries.map(|entry| entry["device"].clone()).collect()
}

/// Paths of the device's own nodes, without the control nodes that all devices share.
fn own_nodes(device: &Value) -> BTreeSet<String> {
    let nodes = device["nodes"].as_array().into_iter().flatten();
    let own = nodes.filter(|node| node["role"] != "control");
    texts(own.map(|node| &node["path"]))
}

/// Checks that every device resolves for every MIG strategy. A card in MIG mode resolves too, and its
/// container gets the nodes of all partitions.
fn resolve_all(folder: &Path, cache: &mut Cache) {
    let devices = devices(folder);
    for device in &devices {
        let is_part = |part: &&Value| part["kind"]["partition"]["parent"] == device["id"];
        let parts = devices.iter().filter(is_part).map(own_nodes);
        let expected: BTreeSet<String> = parts.chain([own_nodes(device)]).flatten().collect();
        for name in [&device["id"], &device["index"]] {
            let Some(name) = name.as_str() else { continue };
            let name = format!("k8s.device-plugin.nvidia.com/gpu={name}");
            let container = container(cache, &name);
            let nodes = container["linux"]["devices"].as_array().unwrap();
            let given = texts(nodes.iter().map(|node| &node["path"]));
            assert!(given.is_superset(&expected), "{name}: {given:?}");
        }
    }
}

/// Root folder of the simulated host in a node's folder.
fn root(node: &Path) -> PathBuf {
    node.join("root")
}

/// Library of the simulated driver in a node's folder.
fn library(node: &Path) -> PathBuf {
    node.join("libnvidia-ml.so.1")
}

fn json(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// Values at a key in the edits of the whole spec and of a device.
fn edits<'a>(spec: &'a Value, device: &'a Value, key: &str) -> Vec<&'a Value> {
    let both = [&spec["containerEdits"][key], &device["containerEdits"][key]];
    let lists = both.into_iter().filter_map(Value::as_array);
    lists.flatten().collect()
}

fn texts<'a>(values: impl IntoIterator<Item = &'a Value>) -> BTreeSet<String> {
    values.into_iter().map(Value::to_string).collect()
}

/// Copy of a map with only these keys.
fn only(value: &Value, keys: &[&str]) -> Value {
    let pairs = keys.iter().filter(|key| !value[**key].is_null());
    pairs
        .map(|key| ((*key).to_owned(), value[*key].clone()))
        .collect()
}

/// Gives every node a host path that exists, because the crate calls stat on it.
fn ground(spec: &mut Value) {
    fn nodes(edits: &mut Value) {
        let nodes = edits.get_mut("deviceNodes").and_then(Value::as_array_mut);
        for node in nodes.into_iter().flatten() {
            node["hostPath"] = json!(NODE);
        }
    }
    spec["cdiVersion"] = json!("0.7.0");
    if let Some(edits) = spec.get_mut("containerEdits") {
        nodes(edits);
    }
    for device in spec["devices"].as_array_mut().unwrap() {
        nodes(&mut device["containerEdits"]);
    }
}

/// OCI spec of a container with one device, as the crate makes it.
fn container(cache: &mut Cache, name: &str) -> Value {
    let mut spec = runtime::Spec::default();
    spec.set_mounts(Some(Vec::new()))
        .set_linux(None)
        .set_hooks(None);
    cache
        .inject_devices(Some(&mut spec), vec![name.to_owned()])
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::to_value(spec).unwrap()
}

/// Checks that a container with a device has the edits of the spec and nothing else.
fn compare(spec: &Value, device: &Value, container: &Value) {
    let list = |pointer: &str| {
        let found = container.pointer(pointer).and_then(Value::as_array);
        found.into_iter().flatten().collect::<Vec<_>>()
    };
    let env = texts(list("/process/env"));
    let default = serde_json::to_value(runtime::Spec::default()).unwrap();
    let own = texts(default["process"]["env"].as_array().unwrap());
    let given: BTreeSet<String> = env.difference(&own).cloned().collect();
    assert_eq!(given, texts(edits(spec, device, "env")));

    let paths = |nodes: Vec<&Value>| texts(nodes.iter().map(|node| &node["path"]));
    assert_eq!(
        paths(list("/linux/devices")),
        paths(edits(spec, device, "deviceNodes"))
    );

    let mounts = list("/mounts").into_iter().map(|mount| {
        json!({"hostPath": mount["source"], "containerPath": mount["destination"], "options": mount["options"]})
    });
    let mounts: Vec<Value> = mounts.collect();
    let meant = edits(spec, device, "mounts").into_iter();
    let meant: Vec<Value> = meant
        .map(|mount| only(mount, &["hostPath", "containerPath", "options"]))
        .collect();
    assert_eq!(texts(&mounts), texts(&meant));

    let keys = ["path", "args", "env"];
    let hooks = list("/hooks/createContainer").into_iter();
    let hooks: Vec<Value> = hooks.map(|hook| only(hook, &keys)).collect();
    let meant = edits(spec, device, "hooks").into_iter();
    let meant: Vec<Value> = meant.map(|hook| only(hook, &keys)).collect();
    assert_eq!(hooks, meant, "in this order");

    let groups = texts(list("/process/user/additionalGids"));
    assert_eq!(groups, texts(edits(spec, device, "additionalGids")));
}

/// Checks all specs of a profile.
fn judge(profile: &str, hooks: bool) {
    let folder = tempfile::tempdir().unwrap();
    let files = generate(profile, folder.path(), hooks);
    let mut names = BTreeSet::new();
    for file in &files {
        let raw = parse_spec(file).unwrap_or_else(|error| panic!("{profile}: {error:?}"));
        validate_spec(&raw).unwrap_or_else(|error| panic!("{profile}: {error:?}"));
        read_spec(file, 0).unwrap_or_else(|error| panic!("{profile}: {error:?}"));
        let mut spec = json(file);
        let kind = spec["kind"].as_str().unwrap().to_owned();
        for device in spec["devices"].as_array().unwrap() {
            names.insert(format!("{kind}={}", device["name"].as_str().unwrap()));
        }
        ground(&mut spec);
        std::fs::write(file, spec.to_string()).unwrap();
    }
    let dir = folder.path().join("cdi");
    let cache = new_cache(vec![with_spec_dirs(&[dir.to_str().unwrap()])]);
    let mut cache = cache.lock().unwrap();
    let listed: BTreeSet<String> = cache.list_devices().into_iter().collect();
    assert_eq!(listed, names, "{profile}");
    for file in &files {
        let spec = json(file);
        let kind = spec["kind"].as_str().unwrap();
        for device in spec["devices"].as_array().unwrap() {
            let name = format!("{kind}={}", device["name"].as_str().unwrap());
            compare(&spec, device, &container(&mut cache, &name));
        }
    }
    assert!(!names.is_empty(), "{profile}");
    resolve_all(folder.path(), &mut cache);
}

#[test]
fn every_spec_of_every_profile_is_taken_and_means_what_we_meant() {
    for profile in profiles() {
        judge(&profile, true);
    }
}

#[test]
fn specs_without_hooks_are_taken_too() {
    for profile in ["dgx-a100", "wsl", "tegra"] {
        judge(profile, false);
    }
}

#[test]
fn a_name_that_is_in_no_spec_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    generate("t4", folder.path(), true);
    let dir = folder.path().join("cdi");
    let cache = new_cache(vec![with_spec_dirs(&[dir.to_str().unwrap()])]);
    let name = "k8s.device-plugin.nvidia.com/gpu=GPU-none".to_owned();
    let mut spec = runtime::Spec::default();
    let mut cache = cache.lock().unwrap();
    let error = cache.inject_devices(Some(&mut spec), vec![name.clone()]);
    assert!(error.unwrap_err().to_string().contains(&name));
}
