//! Contents of specs: nodes under their roots, libraries under their names, effects of flags.

use model::{DriverFile, FileKind, names};

use super::*;

/// Returns the path of each node on the host, by its path in the container.
fn places(spec: &CdiSpec) -> Vec<(&str, Option<&str>)> {
    let edits = spec.devices.iter().map(|device| &device.container_edits);
    let nodes = edits.chain([&spec.container_edits]);
    let nodes = nodes.flat_map(|edits| &edits.device_nodes);
    nodes
        .map(|node| (node.path.as_str(), node.host_path.as_deref()))
        .collect()
}

#[test]
fn a_node_that_only_the_host_has_is_not_looked_for_under_the_dev_root() {
    let wish = SpecContents {
        dev_root: "/run/nvidia/driver".into(),
        gdrcopy: true,
        ..SpecContents::default()
    };
    let mut snapshot = machine(vec![indexed_card(0)], DriverFiles::default());
    for backend in &mut snapshot.backends {
        backend.extras.host_nodes = ["/dev/gdrdrv", "/dev/nvidia-uvm"].map(str::to_owned).into();
    }
    let made = made(&snapshot, &wish, &cdi());
    let driver = |name: &str| format!("/run/nvidia/driver/dev/{name}");
    let [own, control] = [driver("nvidia0"), driver("nvidiactl")];
    let gpus = places(spec(&made, GPU));
    assert!(gpus.contains(&("/dev/nvidia0", Some(&own))), "{gpus:?}");
    assert!(
        gpus.contains(&("/dev/nvidiactl", Some(&control))),
        "{gpus:?}"
    );
    assert!(gpus.contains(&("/dev/nvidia-uvm", None)), "{gpus:?}");
    assert_eq!(places(spec(&made, GDRCOPY)), [("/dev/gdrdrv", None)]);
}

fn library(path: &str, soname: &str) -> DriverFile {
    DriverFile {
        path: path.to_owned(),
        kind: FileKind::Library,
        container_path: None,
        soname: Some(soname.to_owned()),
        links: Vec::new(),
    }
}

/// Returns the links that the hooks of every container make.
fn links(edits: &ContainerEdits) -> Vec<&str> {
    let args = edits.hooks.iter().flat_map(|hook| &hook.args);
    args.map(String::as_str)
        .filter(|arg| arg.contains("::"))
        .collect()
}

#[test]
fn a_library_is_found_by_its_soname_though_the_host_has_no_such_link() {
    let files = |hooks: &[&str]| DriverFiles {
        files: vec![
            library("/lib64/libcuda.so.580.95.05", "libcuda.so.1"),
            library("/lib64/libnvcuvid.so.580.95.05", "libnvcuvid.so.1"),
            library(
                "/lib64/libnvidia-tls.so.580.95.05",
                "libnvidia-tls.so.580.95.05",
            ),
        ],
        hooks: hooks.iter().map(|hook| (*hook).to_owned()).collect(),
        ..DriverFiles::default()
    };
    let edits = |hooks: &[&str]| {
        let snapshot = machine(vec![indexed_card(0)], files(hooks));
        let made = made(&snapshot, &SpecContents::default(), &cdi());
        spec(&made, GPU).container_edits.clone()
    };
    let with = edits(&["/usr/bin/nvidia-ctk"]);
    assert_eq!(
        links(&with),
        [
            "libcuda.so.1::/lib64/libcuda.so",
            "libcuda.so.580.95.05::/lib64/libcuda.so.1",
            "libnvcuvid.so.580.95.05::/lib64/libnvcuvid.so.1",
        ]
    );
    let without = edits(&[]);
    let mount = |path: &str| {
        let mut mounts = without.mounts.iter();
        let mount = mounts.find(|mount| mount.container_path == path)?;
        Some(mount.host_path.as_str())
    };
    assert_eq!(
        mount("/lib64/libnvcuvid.so.1"),
        Some("/lib64/libnvcuvid.so.580.95.05")
    );
    assert_eq!(
        mount("/lib64/libcuda.so"),
        Some("/lib64/libcuda.so.580.95.05")
    );
    assert_eq!(without.mounts.len(), 6);
}

#[test]
fn companions_of_the_driver_are_there_where_the_flag_asks_for_them() {
    let companion = DriverFile {
        kind: FileKind::Companion,
        ..library("/opt/glvnd/libEGL.so.1.1.0", "libEGL.so.1")
    };
    let files = DriverFiles {
        files: vec![
            library("/lib64/libcuda.so.580.95.05", "libcuda.so.1"),
            companion,
        ],
        hooks: vec!["/usr/bin/nvidia-ctk".to_owned()],
        ..DriverFiles::default()
    };
    let snapshot = machine(vec![indexed_card(0)], files);
    let text = |flags: &[&str]| {
        let cdi = NvidiaCdi {
            feature_flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            ..cdi()
        };
        let made = made(&snapshot, &SpecContents::default(), &cdi);
        assert_eq!(made.notes, [""; 0]);
        spec(&made, GPU).to_text()
    };
    assert!(!text(&[]).contains("glvnd"));
    insta::assert_snapshot!("companions", text(&["enable-explicit-driver-libraries"]));
}

#[test]
fn cards_are_marked_coherent_or_not_where_the_flag_asks_for_it() {
    let devices = vec![
        indexed_card(0).with_attribute(names::COHERENT, true),
        indexed_card(1).with_attribute(names::COHERENT, false),
        indexed_card(2),
        indexed_partition(0, 0).with_attribute(names::COHERENT, true),
    ];
    let snapshot = machine(devices, DriverFiles::default());
    let cdi = NvidiaCdi {
        feature_flags: vec!["enable-coherent-annotations".to_owned()],
        ..cdi()
    };
    let marked = made(&snapshot, &SpecContents::default(), &cdi);
    assert_eq!(marked.notes.len(), 1, "{:?}", marked.notes);
    insta::assert_snapshot!("coherent", spec(&marked, GPU).to_text());
    let plain = made(&snapshot, &SpecContents::default(), &super::cdi());
    assert!(!spec(&plain, GPU).to_text().contains("annotations"));
}

#[test]
fn nobody_misses_the_files_of_a_driver_that_is_not_there() {
    let made = made(&machine(Vec::new(), DriverFiles::default()), &all(), &cdi());
    assert_eq!(made.notes, [""; 0]);
}
