//! Properties of every spec.

use std::collections::BTreeSet;

use config::ListStrategy;
use model::{Kind, NodeRole, NodeStat};
use rstest::rstest;

use super::{layouts::one, *};
use grant::cdi_names;

use crate::sample::{foreign, listed_pool, tegra_device, wsl};

#[test]
fn cards_are_named_as_the_pools_name_them_and_all_is_all_of_them() {
    let snapshot = machine((0..4).map(indexed_card).collect(), DriverFiles::default());
    for (ids, names) in [
        (
            vec![IdStrategy::Uuid],
            vec!["GPU-a", "GPU-b", "GPU-c", "GPU-d", "all"],
        ),
        (vec![IdStrategy::Index], vec!["0", "1", "2", "3", "all"]),
        (
            vec![IdStrategy::Index, IdStrategy::Uuid],
            vec![
                "0", "1", "2", "3", "GPU-a", "GPU-b", "GPU-c", "GPU-d", "all",
            ],
        ),
    ] {
        let wish = SpecContents {
            ids,
            ..SpecContents::default()
        };
        let made = made(&snapshot, &wish, &cdi());
        let spec = spec(&made, GPU);
        let found: Vec<&str> = spec.devices.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(found, names);
        let all = device(spec, "all");
        assert_eq!(
            paths(&all.container_edits),
            [
                "/dev/nvidia0",
                "/dev/nvidia1",
                "/dev/nvidia2",
                "/dev/nvidia3"
            ]
        );
    }
}

#[test]
fn a_mig_device_has_its_own_rights_and_a_card_in_mig_mode_those_of_its_parts() {
    let mut whole = indexed_card(0);
    whole.kind = Kind::Card { partitioned: true };
    let devices = vec![
        whole,
        indexed_partition(0, 0),
        indexed_partition(0, 1),
        indexed_card(1),
    ];
    let made = made(&machine(devices, DriverFiles::default()), &all(), &cdi());
    let spec = spec(&made, GPU);
    let part = |name| paths(&device(spec, name).container_edits);
    let caps = |caps: [u32; 2]| caps.map(|cap| format!("/dev/nvidia-caps/nvidia-cap{cap}"));
    let [a, b] = [caps([12, 13]), caps([21, 22])];
    assert_eq!(part("MIG-0-0"), ["/dev/nvidia0", &a[0], &a[1]]);
    assert_eq!(part("0:1"), ["/dev/nvidia0", &b[0], &b[1]]);
    assert_eq!(part("GPU-d"), ["/dev/nvidia0", &a[0], &a[1], &b[0], &b[1]]);
    assert_eq!(part("GPU-c"), ["/dev/nvidia1"]);
}

#[test]
fn only_a_mig_device_for_graphics_can_draw() {
    let (mut snapshot, wish, cdi) = one("debian");
    let pci = snapshot.devices[0].device.pci;
    let draws = |profile: &str, snapshot: &mut Snapshot| {
        let mut part = indexed_partition(0, 0);
        part.pci = pci;
        if let Kind::Partition { profile: own, .. } = &mut part.kind {
            *own = Some(profile.to_owned());
        }
        snapshot.devices[0].device = part.into();
        let made = made(snapshot, &wish, &cdi);
        let spec = spec(&made, GPU);
        let edits = &device(spec, "MIG-0-0").container_edits;
        paths(edits).contains(&"/dev/dri/renderD128")
    };
    assert!(!draws("1g.5gb", &mut snapshot));
    assert!(draws("1g.5gb+gfx", &mut snapshot));
}

#[test]
fn every_class_that_is_there_and_asked_for_has_a_spec() {
    let snapshot = machine(vec![indexed_card(0)], DriverFiles::default());
    let made = made(&snapshot, &all(), &cdi());
    let names: Vec<String> = made
        .specs
        .iter()
        .flat_map(CdiSpec::qualified_names)
        .collect();
    let names: Vec<&str> = names
        .iter()
        .filter_map(|name| name.strip_prefix("k8s.device-plugin.nvidia.com/"))
        .collect();
    assert_eq!(
        names,
        [
            "gpu=0",
            "gpu=GPU-d",
            "gpu=all",
            "imex-channel=0",
            "imex-channel=1",
            "gdrcopy=all",
            "gds=all",
            "mofed=all",
        ]
    );
    for spec in &made.specs {
        let value = serde_json::to_value(spec).unwrap();
        assert_eq!(check_spec(&value), [], "{}", spec.kind);
        let env = &spec.container_edits.env;
        assert_eq!(env["NVIDIA_VISIBLE_DEVICES"], "void");
    }
    let gds = device(spec(&made, GDS), "all");
    assert_eq!(
        paths(&gds.container_edits),
        ["/dev/nvidia-fs0", "/dev/nvidia-fs1"]
    );
    let none = super::made(&snapshot, &SpecContents::default(), &cdi());
    assert_eq!(none.specs.len(), 1, "nothing that nobody asked for");
}

/// Every name that `grant` hands over is in a spec.
#[rstest]
#[case::cards(four_cards(listed_pool(&[ListStrategy::CdiCri])))]
#[case::partitions(offer_of_devices("nvidia.com/gpu", listed_pool(&[ListStrategy::CdiCri]), vec![indexed_partition(0, 0), indexed_partition(0, 1)]))]
#[case::wsl(offer_of_devices("nvidia.com/gpu", listed_pool(&[ListStrategy::CdiCri]), vec![wsl()]))]
#[case::everything(four_cards(handover_pool(|h| {
    h.lists = vec![ListStrategy::CdiCri];
    (h.nvidia.gds, h.nvidia.gdrcopy, h.nvidia.mofed) = (true, true, true);
    h.ids = IdStrategy::Index;
    h.nvidia.imex = vec![0, 9];
})))]
fn every_name_that_a_container_is_given_is_in_a_spec(#[case] offer: pool::Offer) {
    let offer = with_extras(all_extras(), offer);
    let wish = SpecContents::of_handovers([&offer.pool.handover]).unwrap();
    let made = made(&offer.snapshot, &wish, &cdi());
    let there: BTreeSet<String> = made
        .specs
        .iter()
        .flat_map(CdiSpec::qualified_names)
        .collect();
    for unit in &offer.units {
        let names = cdi_names(&offer, &offer.entry_of_unit(unit).unwrap().device);
        assert!(!names.is_empty());
        for name in names {
            assert!(there.contains(&name), "{name} is not in {there:?}");
        }
    }
}

#[test]
fn other_vendors_and_boards_without_nodes_have_no_spec() {
    let snapshot = machine(vec![foreign(), tegra_device()], DriverFiles::default());
    let made = made(&snapshot, &SpecContents::default(), &cdi());
    assert_eq!(made.specs, []);
    let said = made.notes.iter().any(|note| note.contains("tegra"));
    assert!(said, "{:?}", made.notes);
}

#[test]
fn a_device_whose_nodes_vanished_keeps_its_entry() {
    let before = made(
        &machine(
            vec![indexed_card(0), indexed_card(1)],
            DriverFiles::default(),
        ),
        &SpecContents::default(),
        &cdi(),
    );
    let mut lost = indexed_card(0);
    lost.nodes.clear();
    let snapshot = machine(vec![lost, indexed_card(1)], DriverFiles::default());
    let after = made_after(&before, &snapshot, &SpecContents::default(), &cdi());
    assert_eq!(
        device(spec(&after, GPU), "GPU-d"),
        device(spec(&before, GPU), "GPU-d")
    );
    let gone = machine(vec![indexed_card(1)], DriverFiles::default());
    let gone = made_after(&before, &gone, &SpecContents::default(), &cdi());
    assert_eq!(spec(&gone, GPU).find_device("GPU-d"), None);
}

#[test]
fn a_name_that_cdi_does_not_allow_is_left_out_and_told() {
    let mut odd = indexed_partition(0, 0);
    odd.id = "MIG-GPU-d/1/0".into();
    let made = made(
        &machine(vec![odd, indexed_card(0)], DriverFiles::default()),
        &SpecContents::default(),
        &cdi(),
    );
    assert_eq!(spec(&made, GPU).find_device("MIG-GPU-d/1/0"), None);
    assert!(made.notes.iter().any(|note| note.contains("MIG-GPU-d/1/0")));
}

#[test]
fn without_a_program_for_hooks_libraries_are_there_under_their_links_names() {
    let (snapshot, wish, cdi) = one("container-driver");
    let made = made(&snapshot, &wish, &cdi);
    let spec = spec(&made, GPU);
    assert!(spec.container_edits.hooks.is_empty());
    let there = inside(&spec.container_edits);
    for name in ["libcuda.so", "libcuda.so.1", "libnvidia-ml.so.1"] {
        let path = format!("/usr/lib/x86_64-linux-gnu/{name}");
        assert!(there.contains(&path.as_str()), "{path}");
    }
    let mounts = spec.container_edits.mounts.iter();
    let roots = mounts.filter(|mount| !mount.host_path.starts_with("/run/nvidia/driver/"));
    assert_eq!(roots.count(), 0);
    let [note] = &made.notes[..] else {
        panic!("{:?}", made.notes);
    };
    assert!(note.contains("update-ldcache"), "{note}");
}

#[rstest]
#[case::one("update-ldcache", 3)]
#[case::all("all", 0)]
fn hooks_can_be_left_out(#[case] name: &str, #[case] count: usize) {
    let (snapshot, wish, mut cdi) = one("debian");
    cdi.disable_hooks = vec![name.to_owned()];
    let made = made(&snapshot, &wish, &cdi);
    let hooks = &spec(&made, GPU).container_edits.hooks;
    assert_eq!(hooks.len(), count, "{hooks:?}");
    assert!(
        !hooks
            .iter()
            .any(|hook| hook.args.contains(&name.to_owned()))
    );
    assert_eq!(made.notes, [""; 0], "it is what the config asks for");
}

#[test]
fn switches_do_what_nvidias_do() {
    let (snapshot, wish, mut cdi) = one("debian");
    let edits = |cdi: &NvidiaCdi| {
        let made = made(&snapshot, &wish, cdi);
        (spec(&made, GPU).clone(), made.notes)
    };
    let (with, _) = edits(&cdi);
    let groups = &device(&with, "GPU-d").container_edits.groups;
    assert_eq!(groups[..], [44, 110]);
    assert_eq!(with.cdi_version, "0.7.0");
    let socket = "/run/nvidia-persistenced/socket";
    assert!(inside(&with.container_edits).contains(&socket));
    cdi.feature_flags = [
        "no-additional-gids-for-device-nodes",
        "disable-ipc-discoverer",
        "x",
    ]
    .map(str::to_owned)
    .into();
    let (without, notes) = edits(&cdi);
    let groups = &device(&without, "GPU-d").container_edits.groups;
    assert_eq!(groups[..], [0; 0]);
    assert_eq!(without.cdi_version, "0.3.0");
    assert!(!inside(&without.container_edits).contains(&socket));
    assert_eq!(notes, ["the CDI feature flag `x` has no effect"]);
}

#[test]
fn the_version_is_the_lowest_that_suffices() {
    let snapshot = machine(vec![indexed_card(0)], DriverFiles::default());
    let version = |wish: &SpecContents| {
        let made = made(&snapshot, wish, &cdi());
        spec(&made, GPU).cdi_version.clone()
    };
    assert_eq!(version(&SpecContents::default()), "0.3.0");
    assert_eq!(version(&all()), "0.5.0", "a name starts with a digit");
    let moved = SpecContents {
        dev_root: "/run/nvidia/driver".into(),
        ..SpecContents::default()
    };
    assert_eq!(version(&moved), "0.5.0", "nodes have a path on the host");
}

#[test]
fn a_node_for_a_group_puts_the_container_into_it() {
    let stat = NodeStat {
        major: 195,
        minor: 0,
        mode: 0o20660,
        uid: 0,
        gid: 27,
    };
    let files = DriverFiles {
        nodes: [("/dev/nvidia0".to_owned(), stat)].into(),
        ..DriverFiles::default()
    };
    let made = made(
        &machine(vec![indexed_card(0)], files),
        &SpecContents::default(),
        &cdi(),
    );
    let edits = &device(spec(&made, GPU), "GPU-d").container_edits;
    assert_eq!(edits.groups, [27]);
    let [node] = &edits.device_nodes[..] else {
        panic!("{:?}", edits.device_nodes);
    };
    assert_eq!((node.file_mode, node.gid), (Some(0o660), Some(27)));
}

#[test]
fn a_management_container_has_every_node_of_the_driver() {
    let (snapshot, wish, cdi) = one("debian");
    let made = written(management(&snapshot, &wish, &cdi));
    let [spec] = &made.specs[..] else {
        panic!("{:?}", made.specs);
    };
    assert_eq!(spec.kind, "management.nvidia.com/gpu");
    let value = serde_json::to_value(spec).unwrap();
    assert_eq!(check_spec(&value), []);
    let mut nodes = paths(&device(spec, "all").container_edits);
    nodes.extend(paths(&spec.container_edits));
    for node in ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"] {
        assert!(nodes.contains(&node), "{nodes:?}");
    }
}

#[test]
fn nothing_is_in_a_spec_twice() {
    let mut whole = indexed_card(0);
    whole.kind = Kind::Card { partitioned: true };
    whole.nodes.extend(indexed_card(0).nodes);
    let devices = vec![whole, indexed_partition(0, 0), indexed_partition(0, 1)];
    let made = made(&machine(devices, DriverFiles::default()), &all(), &cdi());
    for spec in &made.specs {
        let edits = spec.devices.iter().map(|device| &device.container_edits);
        for edits in edits.chain([&spec.container_edits]) {
            let all = paths(edits);
            let once: BTreeSet<&str> = all.iter().copied().collect();
            assert_eq!(all.len(), once.len(), "{all:?}");
        }
        let common = paths(&spec.container_edits);
        let own = spec
            .devices
            .iter()
            .flat_map(|device| paths(&device.container_edits));
        assert_eq!(own.filter(|path| common.contains(path)).count(), 0);
    }
    let control = indexed_card(0)
        .nodes
        .into_iter()
        .filter(|n| n.role == NodeRole::Control);
    assert_eq!(
        paths(&spec(&made, GPU).container_edits).len(),
        control.count()
    );
}

#[test]
fn every_link_leads_to_something_that_the_container_has() {
    let (snapshot, wish, cdi) = one("debian");
    let made = made(&snapshot, &wish, &cdi);
    let edits = &spec(&made, GPU).container_edits;
    let args = edits.hooks.iter().flat_map(|hook| &hook.args);
    let links: Vec<(&str, &str)> = args.filter_map(|arg| arg.split_once("::")).collect();
    assert!(!links.is_empty());
    let there = inside(edits);
    for (target, link) in &links {
        let folder = link.rsplit_once('/').unwrap().0;
        let target = match target.starts_with('/') {
            true => (*target).to_owned(),
            false => format!("{folder}/{target}"),
        };
        let known = there.contains(&target.as_str()) || links.iter().any(|l| l.1 == target);
        assert!(known, "{link} leads to {target}");
    }
}

#[test]
fn a_place_in_the_container_is_mounted_once() {
    let file = |path: &str, container: &str| model::DriverFile {
        path: path.to_owned(),
        kind: model::FileKind::Config,
        container_path: Some(container.to_owned()),
        soname: None,
        links: Vec::new(),
    };
    let files = DriverFiles {
        files: vec![
            file("/a", "/etc/x"),
            file("/b", "/etc/y"),
            file("/c", "/etc/x"),
        ],
        ..DriverFiles::default()
    };
    let made = made(
        &machine(vec![indexed_card(0)], files),
        &SpecContents::default(),
        &cdi(),
    );
    let edits = &spec(&made, GPU).container_edits;
    assert_eq!(inside(edits), ["/etc/x", "/etc/y"]);
    assert_eq!(edits.mounts[0].host_path, "/a");
}
