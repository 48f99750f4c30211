//! Tests of the host's files, read as a user of the driver reads them.
#![expect(clippy::unwrap_used, reason = "a test's helpers may panic too")]

use std::{collections::BTreeSet, os::unix::fs::PermissionsExt as _, path::Path};

use sim::NodeProfile;
use sim_node::{HostTree, state::NodeState};

fn written(profile: &str) -> (tempfile::TempDir, NodeState) {
    let dir = sim::scratch().unwrap();
    let state = NodeProfile::find_profile(profile)
        .unwrap()
        .to_state()
        .unwrap();
    HostTree::from_state(&state).write_tree(dir.path()).unwrap();
    (dir, state)
}

#[test]
fn cards_are_found_on_the_bus_below_their_bridges() {
    let (dir, _) = written("dgx-a100");
    let at = dir.path().join("sys/bus/pci/devices/0000:87:00.0");
    let read = |name: &str| fs_err::read_to_string(at.join(name)).unwrap();
    assert_eq!(read("vendor"), "0x10de\n");
    assert_eq!(read("device"), "0x20b0\n");
    assert_eq!(read("numa_node"), "7\n");
    assert_eq!(read("local_cpulist"), "112-127,240-255\n");
    assert_eq!(read("current_link_speed"), "16.0 GT/s PCIe\n");
    let driver = at.join("driver").canonicalize().unwrap();
    assert_eq!(driver.file_name().unwrap(), "nvidia");
    let real = at.canonicalize().unwrap();
    let bridges = "sys/devices/pci0000:80/0000:80:01.1/0000:81:00.0/0000:82:10.0";
    assert!(real.starts_with(dir.path().canonicalize().unwrap().join(bridges)));
}

#[test]
fn a_card_without_a_numa_node_says_so() {
    let dir = sim::scratch().unwrap();
    let mut state = NodeProfile::find_profile("t4").unwrap().to_state().unwrap();
    state.gpus[0].numa = None;
    HostTree::from_state(&state).write_tree(dir.path()).unwrap();
    let file = dir
        .path()
        .join("sys/bus/pci/devices/0000:00:1e.0/numa_node");
    assert_eq!(fs_err::read_to_string(file).unwrap(), "-1\n");
}

#[test]
fn other_vendors_and_switches_are_on_the_bus_too() {
    let (dir, state) = written("dgx-a100");
    let bus = dir.path().join("sys/bus/pci/devices");
    let classes = fs_err::read_dir(bus)
        .unwrap()
        .map(|entry| fs_err::read_to_string(entry.unwrap().path().join("class")).unwrap());
    let classes: Vec<_> = classes.collect();
    let count = |class: &str| classes.iter().filter(|c| c.starts_with(class)).count();
    assert_eq!(count("0x0302"), state.gpus.len());
    assert_eq!(count("0x0680"), 6);
    assert_eq!(count("0x0207"), 1);
    assert!(count("0x0604") > 8);
}

#[test]
fn rights_are_numbered_as_the_driver_does() {
    let (dir, state) = written("a100-mig");
    let file = dir.path().join("proc/driver/nvidia-caps/mig-minors");
    let minors = fs_err::read_to_string(file).unwrap();
    for line in [
        "config 1",
        "monitor 2",
        "gpu0/gi0/access 3",
        "gpu0/gi1/access 12",
        "gpu0/gi1/ci0/access 13",
        "gpu1/gi0/access 138",
    ] {
        assert!(minors.lines().any(|l| l == line), "{line}");
    }
    for gpu in &state.gpus {
        for mig in &gpu.migs {
            for part in [String::new(), format!("/ci{}", mig.ci)] {
                let right = format!("gpu{}/gi{}{part}/access ", gpu.minor, mig.gi);
                let number = minors.lines().find_map(|line| line.strip_prefix(&right));
                let node = format!("dev/nvidia-caps/nvidia-cap{}", number.unwrap());
                assert!(dir.path().join(&node).exists(), "{node}");
            }
        }
    }
}

#[test]
fn what_went_away_is_removed_and_the_rest_stays() {
    let (dir, mut state) = written("a100-mig");
    let gone = state.gpus.remove(0);
    let tree = HostTree::from_state(&state);
    tree.write_tree(dir.path()).unwrap();
    tree.prune_others(dir.path()).unwrap();
    let there = |path: &str| dir.path().join(path).symlink_metadata().is_ok();
    assert!(!there("dev/nvidia0") && there("dev/nvidia1"));
    assert!(!there(&format!("sys/bus/pci/devices/{}", gone.pci)));
    assert!(!there(&format!("sys/bus/pci/drivers/nvidia/{}", gone.pci)));
    assert!(!there(&format!("proc/driver/nvidia/gpus/{}", gone.pci)));
    assert!(there("sys/bus/pci/devices/0000:0f:00.0"));
}

#[test]
fn a_path_from_a_profile_stays_in_the_tree() {
    let mut state = NodeProfile::find_profile("t4").unwrap().to_state().unwrap();
    state.gpus[0].under = "../../../etc".to_owned();
    state.others[0].driver = "../x".to_owned();
    for path in HostTree::from_state(&state).entry_paths() {
        assert!(
            path.components()
                .all(|c| matches!(c, std::path::Component::Normal(_))),
            "{path:?}"
        );
    }
}

/// Finds the capability of an id in a configuration space by its list.
fn capability(config: &[u8], wanted: u8) -> Option<Vec<u8>> {
    assert_eq!(config.len(), 256);
    assert_eq!(config[0x06] & 0x10, 0x10);
    let mut at = usize::from(config[0x34]);
    for _ in 0..48 {
        match at {
            0 => return None,
            _ if config[at] == wanted => {
                let length = usize::from(config[at + 2]);
                return Some(config[at..at + length].to_vec());
            }
            _ => at = usize::from(config[at + 1]),
        }
    }
    panic!("the list does not end");
}

#[test]
fn functions_tell_the_same_in_bytes_and_in_text() {
    for name in sim::profile::names() {
        let (dir, _) = written(name);
        let Ok(entries) = fs_err::read_dir(dir.path().join("sys/bus/pci/devices")) else {
            assert_eq!(name, "tegra");
            continue;
        };
        for entry in entries {
            let at = entry.unwrap().path();
            let text = |file: &str| fs_err::read_to_string(at.join(file)).unwrap();
            let config = fs_err::read(at.join("config")).unwrap();
            let number = |from: usize| u16::from_le_bytes([config[from], config[from + 1]]);
            assert_eq!(text("vendor"), format!("0x{:04x}\n", number(0)));
            assert_eq!(text("device"), format!("0x{:04x}\n", number(2)));
            let class = u32::from_le_bytes([config[9], config[10], config[11], 0]);
            assert_eq!(text("class"), format!("0x{class:06x}\n"));
            assert_eq!(text("resource").lines().count(), 13);
            assert!(capability(&config, 0x10).is_some());
        }
    }
}

#[test]
fn a_card_has_a_window_of_its_memory_and_no_two_overlap() {
    let (dir, state) = written("hgx-h100");
    let mut ranges = Vec::new();
    for gpu in &state.gpus {
        let file = format!("sys/bus/pci/devices/{}/resource", gpu.pci);
        let resource = fs_err::read_to_string(dir.path().join(file)).unwrap();
        let number = |text: &str| u64::from_str_radix(&text[2..], 16).unwrap();
        let line: Vec<_> = resource
            .lines()
            .nth(1)
            .unwrap()
            .split(' ')
            .map(number)
            .collect();
        assert_eq!(line[1] - line[0] + 1, 128 << 30);
        assert_eq!(line[0] % (128 << 30), 0);
        ranges.push((line[0], line[1]));
    }
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
}

#[test]
fn a_vgpu_tells_its_host_and_a_whole_card_none() {
    let (dir, _) = written("vgpu");
    let file = "sys/bus/pci/devices/0000:06:00.0/config";
    let own = capability(&fs_err::read(dir.path().join(file)).unwrap(), 0x09).unwrap();
    assert_eq!(&own[3..7], b"VF\0\x16");
    assert_eq!(&own[7..17], b"570.133.10");
    assert_eq!(&own[17..27], b"r570_00\0\0\0");
    let (dir, _) = written("t4");
    let file = "sys/bus/pci/devices/0000:00:1e.0/config";
    let own = capability(&fs_err::read(dir.path().join(file)).unwrap(), 0x09).unwrap();
    assert!(!own.windows(2).any(|bytes| bytes == b"VF"));
}

#[test]
fn a_machine_tells_its_product() {
    let (dir, _) = written("dgx-a100");
    let file = dir.path().join("sys/class/dmi/id/product_name");
    assert_eq!(fs_err::read_to_string(file).unwrap(), "DGXA100\n");
    let (dir, _) = written("tegra");
    let file = dir.path().join("proc/device-tree/model");
    let model = fs_err::read_to_string(file).unwrap();
    assert_eq!(model, "NVIDIA Jetson AGX Orin Developer Kit\0");
}

#[test]
fn platforms_are_told_by_their_files() {
    let there = |dir: &tempfile::TempDir, path: &str| {
        let found = dir.path().join(path).symlink_metadata();
        found.is_ok()
    };
    let (wsl, _) = installed("wsl");
    for path in ["dev/dxg", "usr/lib/wsl/lib/libdxcore.so"] {
        assert!(there(&wsl, path), "{path}");
    }
    let (tegra, _) = written("tegra");
    for path in [
        "etc/nv_tegra_release",
        "sys/devices/soc0/family",
        "dev/nvmap",
    ] {
        assert!(there(&tegra, path), "{path}");
    }
    for dir in [&wsl, &tegra] {
        for path in ["dev/nvidia0", "dev/nvidiactl", "proc/driver"] {
            assert!(!there(dir, path), "{path}");
        }
    }
}

fn installed(profile: &str) -> (tempfile::TempDir, NodeState) {
    let (dir, state) = written(profile);
    let library = dir.path().join("libnvidia-ml.so.1");
    let installation = HostTree::installation(&state, &library);
    installation.write_tree(dir.path()).unwrap();
    (dir, state)
}

#[test]
fn a_driver_is_installed_as_on_a_real_machine() {
    let (dir, _) = installed("dgx-a100");
    let at = |path: &str| dir.path().join(path);
    let lib = "usr/lib/x86_64-linux-gnu";
    for (link, target) in [
        ("libcuda.so", "libcuda.so.1"),
        ("libcuda.so.1", "libcuda.so.580.95.05"),
        ("gbm/nvidia-drm_gbm.so", "../libnvidia-allocator.so.1"),
    ] {
        let found = fs_err::read_link(at(&format!("{lib}/{link}"))).unwrap();
        assert_eq!(found, Path::new(target));
        assert!(at(&format!("{lib}/{link}")).exists(), "{link}");
    }
    for path in [
        "lib/firmware/nvidia/580.95.05/gsp_ga10x.bin",
        "etc/vulkan/icd.d/nvidia_icd.json",
        "run/nvidia-fabricmanager/socket",
        "etc/ld.so.cache",
    ] {
        assert!(at(path).exists(), "{path}");
    }
    let smi = fs_err::metadata(at("bin/nvidia-smi")).unwrap();
    assert_eq!(smi.permissions().mode() & 0o111, 0o111);
}

#[test]
fn below_windows_the_driver_is_in_the_store() {
    let (dir, _) = installed("wsl");
    let stores = fs_err::read_dir(dir.path().join("usr/lib/wsl/drivers")).unwrap();
    let [store] = &stores
        .map(|entry| entry.unwrap().path())
        .collect::<Vec<_>>()[..]
    else {
        panic!("one store");
    };
    for name in ["libcuda.so.1.1", "libnvidia-ml.so.1", "nvcubins.bin"] {
        assert!(store.join(name).is_file(), "{name}");
    }
}

#[test]
fn what_a_tegra_system_tells_of_is_there_but_for_what_other_boards_have() {
    let (dir, _) = installed("tegra");
    let at = |path: &str| dir.path().join(path.trim_start_matches('/'));
    let mut missing = Vec::new();
    for name in ["devices.csv", "drivers.csv"] {
        let csv = "etc/nvidia-container-runtime/host-files-for-container.d";
        let text = fs_err::read_to_string(at(&format!("{csv}/{name}"))).unwrap();
        let lines = text.lines().filter_map(|line| line.split_once(", "));
        for (kind, path) in lines {
            let found = at(path).symlink_metadata();
            match (kind, found) {
                ("sym", Ok(meta)) => assert!(meta.is_symlink(), "{path}"),
                ("dir", Ok(meta)) => assert!(meta.is_dir(), "{path}"),
                (_, Ok(meta)) => assert!(meta.is_file(), "{path}"),
                (_, Err(_)) => missing.push(path.to_owned()),
            }
        }
    }
    assert_eq!(missing.len(), 4, "{missing:?}");
}

#[test]
fn an_installation_is_small_and_goes_without_a_trace() {
    for (profile, node) in [("hgx-h100", "nvidia0"), ("wsl", "dxg"), ("tegra", "nvmap")] {
        goes_without_a_trace(profile, node);
    }
}

fn goes_without_a_trace(profile: &str, node: &str) {
    let (dir, state) = installed(profile);
    let installation = HostTree::installation(&state, &dir.path().join("libnvidia-ml.so.1"));
    let size = |path: &Path| match fs_err::symlink_metadata(dir.path().join(path)).unwrap() {
        file if file.is_file() => file.len(),
        _ => 0,
    };
    let total: u64 = installation.entry_paths().map(size).sum();
    assert!(total < 100_000, "{total}");
    installation.remove_entries(dir.path()).unwrap();
    let tree = HostTree::from_state(&state);
    tree.prune_others(dir.path()).unwrap();
    assert!(!dir.path().join("usr").exists() && dir.path().join("dev").join(node).exists());
}

#[test]
fn libraries_are_for_the_machine_s_processor() {
    let machine = |profile: &str, triplet: &str| {
        let (dir, _) = installed(profile);
        let file = format!("usr/lib/{triplet}/libcuda.so.1");
        let bytes = fs_err::read(dir.path().join(file)).unwrap();
        assert_eq!(&bytes[..6], b"\x7fELF\x02\x01");
        u16::from_le_bytes([bytes[18], bytes[19]])
    };
    assert_eq!(machine("t4", "x86_64-linux-gnu"), 62);
    assert_eq!(machine("gb200-nvl", "aarch64-linux-gnu"), 183);
}

#[test]
fn cards_that_draw_have_nodes_for_it() {
    let (dir, state) = written("l40s-pcie");
    for gpu in &state.gpus {
        let drm = format!("sys/bus/pci/devices/{}/drm", gpu.pci);
        let names = fs_err::read_dir(dir.path().join(drm)).unwrap();
        let names: BTreeSet<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2);
        for name in names {
            assert!(dir.path().join("dev/dri").join(name).exists());
        }
        let link = format!("dev/dri/by-path/pci-{}-render", gpu.pci);
        assert!(dir.path().join(link).exists());
    }
    let (dir, _) = written("dgx-a100");
    assert!(!dir.path().join("dev/dri").exists());
}

#[test]
fn a_version_from_a_profile_stays_in_the_tree() {
    let mut state = NodeProfile::find_profile("t4").unwrap().to_state().unwrap();
    state.driver.version = "../../../x".to_owned();
    let installation = HostTree::installation(&state, Path::new("/x"));
    assert_eq!(installation, HostTree::default());
}
