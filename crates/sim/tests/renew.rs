//! Tests of commands that renew cards, and of the holders that block them.

use std::{os::unix::fs::MetadataExt as _, time::Duration};

use sim::{DeviceTarget, ScratchNode};

#[test]
fn a_reset_makes_one_card_new_and_keeps_what_is_for_ever() {
    let node = ScratchNode::from_name("a100-mig").unwrap();
    let target = DeviceTarget::Index(1);
    for (sensor, value) in [
        ("ecc-uncorrected", 2),
        ("ecc-corrected", 3),
        ("remap-pending", 1),
        ("remap-failed", 1),
        ("recovery-action", 1),
        ("nvlink-errors", 9),
        ("pcie-width", 4),
        ("pcie-replays", 8),
        ("energy", 5_000_000),
    ] {
        node.set_sensor(&DeviceTarget::All, sensor, value).unwrap();
    }
    let before = node.node_state().unwrap();
    node.reset_cards(&target, Duration::ZERO).unwrap();
    let after = node.node_state().unwrap();
    assert_eq!(after.gpus[0], before.gpus[0]);
    let card = &after.gpus[1];
    let sensors = &card.sensors;
    assert_eq!((sensors.ecc_uncorrected, sensors.ecc_corrected), (0, 0));
    assert_eq!(
        (sensors.ever_uncorrected(), sensors.ever_corrected()),
        (2, 3)
    );
    assert_eq!((sensors.remap_pending, sensors.remap_failed), (0, 1));
    assert_eq!((sensors.recovery_action, sensors.nvlink_errors), (0, 0));
    assert_eq!(sensors.pcie_width, 16);
    assert_eq!(sensors.pcie_replays, 0);
    assert!(card.energy_millijoules(&after.models[&card.model]) < 5_000_000);
    assert!(card.migs.is_empty() && card.mig_enabled && !card.lost);
    node.set_sensor(&target, "ecc-corrected", 1).unwrap();
    node.reset_cards(&target, Duration::ZERO).unwrap();
    assert_eq!(
        node.node_state().unwrap().gpus[1].sensors.ever_corrected(),
        4
    );
}

#[test]
fn a_card_that_comes_back_counts_anew_and_goes_on_from_there() {
    let node = ScratchNode::from_name("t4").unwrap();
    let target = DeviceTarget::Index(0);
    let energy = || {
        let state = node.node_state().unwrap();
        state.gpus[0].energy_millijoules(&state.models[&state.gpus[0].model])
    };
    let before = energy();
    assert!(before > 0 && energy() == before);
    // The card was not lost.
    node.restore_cards(&target).unwrap();
    assert_eq!(energy(), before);
    node.set_sensor(&target, "ecc-corrected", 3).unwrap();
    node.set_sensor(&target, "pcie-replays", 8).unwrap();
    node.lose_cards(&target).unwrap();
    node.restore_cards(&target).unwrap();
    let after = energy();
    assert!(after < before);
    let sensors = node.node_state().unwrap().gpus[0].sensors.clone();
    assert_eq!((sensors.ecc_corrected, sensors.ever_corrected()), (0, 3));
    assert_eq!(sensors.pcie_replays, 0);
    while energy() == after {
        std::thread::yield_now();
    }
    assert!(energy() > after);
}

#[test]
fn every_loading_of_the_driver_has_a_folder_of_its_own() {
    let node = ScratchNode::from_name("t4").unwrap();
    let module = node.host_root().join("sys/module/nvidia");
    let number = || fs_err::metadata(&module).unwrap().ino();
    let mut numbers = vec![number()];
    for _ in 0..5 {
        node.reload_driver().unwrap();
        assert!(!numbers.contains(&number()));
        numbers.push(number());
        // A change of the node does not touch the module folder.
        node.set_sensor(&DeviceTarget::All, "power", 1).unwrap();
        node.lose_cards(&DeviceTarget::All).unwrap();
        assert_eq!(numbers.last(), Some(&number()));
    }
    let version = fs_err::read_to_string(module.join("version")).unwrap();
    assert_eq!(version.trim(), node.node_state().unwrap().driver.version);
}

#[test]
fn every_start_of_the_machine_has_a_boot_id_of_its_own() {
    let node = ScratchNode::from_name("t4").unwrap();
    let file = node.host_root().join("proc/sys/kernel/random/boot_id");
    let boot = || fs_err::read_to_string(&file).unwrap();
    let mut seen = vec![boot()];
    for _ in 0..3 {
        node.reboot().unwrap();
        assert!(!seen.contains(&boot()));
        assert_eq!(boot().trim().len(), 36);
        seen.push(boot());
    }
    node.reload_driver().unwrap();
    assert_eq!(seen.last(), Some(&boot()));
}

#[test]
fn whoever_has_a_card_open_is_found() {
    let node = ScratchNode::from_name("dgx-a100").unwrap();
    let me = std::process::id();
    let mine = || -> Vec<usize> {
        let cards = node.holders().unwrap().into_iter();
        let held = cards.filter(|card| card.pids.contains(&me));
        held.map(|card| card.index).collect()
    };
    assert!(mine().is_empty());
    let file = fs_err::File::open(node.host_root().join("dev/nvidia5")).unwrap();
    assert_eq!(mine(), [5]);
    drop(file);
    assert!(mine().is_empty());
}
