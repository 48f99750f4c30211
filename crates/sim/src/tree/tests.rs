//! The tree as a driver's user reads it.

use super::*;
use crate::Profile;

fn written(profile: &str) -> (tempfile::TempDir, State) {
    let dir = tempfile::tempdir().unwrap();
    let state = Profile::named(profile).unwrap().state().unwrap();
    Tree::of(&state).write(dir.path()).unwrap();
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
    let dir = tempfile::tempdir().unwrap();
    let mut state = Profile::named("t4").unwrap().state().unwrap();
    state.gpus[0].numa = None;
    Tree::of(&state).write(dir.path()).unwrap();
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
            for ci in [None, Some(mig.ci)] {
                let node = format!(
                    "dev/nvidia-caps/nvidia-cap{}",
                    dev::right(gpu.minor, mig.gi, ci)
                );
                assert!(dir.path().join(&node).exists(), "{node}");
            }
        }
    }
}

#[test]
fn what_went_away_is_removed_and_the_rest_stays() {
    let (dir, mut state) = written("a100-mig");
    let gone = state.gpus.remove(0);
    let tree = Tree::of(&state);
    tree.write(dir.path()).unwrap();
    tree.prune(dir.path()).unwrap();
    let there = |path: &str| dir.path().join(path).symlink_metadata().is_ok();
    assert!(!there("dev/nvidia0") && there("dev/nvidia1"));
    assert!(!there(&format!("sys/bus/pci/devices/{}", gone.pci)));
    assert!(!there(&format!("sys/bus/pci/drivers/nvidia/{}", gone.pci)));
    assert!(!there(&format!("proc/driver/nvidia/gpus/{}", gone.pci)));
    assert!(there("sys/bus/pci/devices/0000:0f:00.0"));
}

#[test]
fn a_path_from_a_profile_stays_in_the_tree() {
    let mut state = Profile::named("t4").unwrap().state().unwrap();
    state.gpus[0].under = "../../../etc".to_owned();
    state.others[0].driver = "../x".to_owned();
    for path in Tree::of(&state).entries.keys() {
        assert!(
            path.components()
                .all(|c| matches!(c, std::path::Component::Normal(_))),
            "{path:?}"
        );
    }
}
