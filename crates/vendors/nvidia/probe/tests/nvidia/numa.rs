//! NUMA node of a card: the node with the nearest processors, or none.

use std::collections::BTreeSet;

use model::PciAddress;
use rstest::rstest;

use super::*;

/// Driver calls about the surroundings of a card.
const CALLS: [&str; 2] = ["nvmlDeviceGetMemoryAffinity", "nvmlDeviceGetCpuAffinity"];

fn pci(rig: &Rig, card: usize) -> PciAddress {
    rig.pci(card)
}

/// Writes the NUMA node that the bus tells for a card.
fn write(rig: &Rig, at: PciAddress, node: &str) {
    fs_err::write(rig.bus_file(at, "numa_node"), format!("{node}\n")).unwrap();
}

/// Returns the bridges above a card, the closest first.
fn bridges(rig: &Rig, card: usize) -> Vec<PciAddress> {
    let under = rig.node.node_state().unwrap().gpus[card].under.clone();
    let parts = under.split('/').filter_map(|part| part.parse().ok());
    parts.rev().collect()
}

/// Returns the NUMA nodes of all cards, and fails if a driver call asked for one.
fn by_files(rig: &Rig) -> Vec<Option<u32>> {
    rig.node.trace().unwrap();
    let report = rig.backend().survey_devices();
    let calls = rig.node.traced_calls().unwrap();
    let asked = |call: &&String| call.contains("Affinity") || call.contains("Numa");
    assert_eq!(calls.iter().find(asked), None);
    cards(&report).iter().map(|card| card.numa).collect()
}

#[rstest]
#[case::virtual_machine("t4")]
#[case::two_sockets("dgx1-v100")]
#[case::four_nodes_in_each_socket("dgx-a100")]
#[case::grace("gb200-nvl")]
fn the_bus_tells_the_node_and_the_driver_is_not_asked(#[case] profile: &str) {
    let rig = Rig::new(profile);
    let expected: Vec<_> = rig
        .node
        .list_gpus()
        .unwrap()
        .iter()
        .map(|g| g.numa)
        .collect();
    let told = by_files(&rig);
    assert_eq!(told, expected);
    let with_cpus = |node: &u32| {
        let state = rig.node.node_state().unwrap();
        let node = state.numa.iter().find(|known| known.node == *node);
        node.is_some_and(|node| !node.cpus.is_empty())
    };
    assert!(told.iter().all(|node| node.as_ref().is_some_and(with_cpus)));
}

#[rstest]
#[case::silent("-1")]
#[case::of_a_node_that_is_not_there("5")]
fn a_machine_of_one_node_has_no_other(#[case] node: &str) {
    let rig = Rig::new("t4");
    write(&rig, pci(&rig, 0), node);
    assert_eq!(by_files(&rig), [Some(0)]);
}

#[rstest]
#[case::silent("-1")]
#[case::of_a_node_that_is_not_there("64")]
fn the_closest_bridge_that_knows_tells_it_where_the_card_does_not(#[case] node: &str) {
    let rig = Rig::new("dgx-a100");
    let bridges = bridges(&rig, 2);
    assert!(bridges.len() >= 3, "{bridges:?}");
    write(&rig, pci(&rig, 2), node);
    write(&rig, bridges[0], "99");
    write(&rig, bridges[1], "6");
    write(&rig, bridges[2], "0");
    let mut expected: Vec<_> = rig
        .node
        .list_gpus()
        .unwrap()
        .iter()
        .map(|g| g.numa)
        .collect();
    expected[2] = Some(6);
    assert_eq!(by_files(&rig), expected);
}

#[rstest]
#[case::by_near_memory(None)]
#[case::by_near_processors(Some(CALLS[0]))]
fn the_driver_tells_it_where_the_bus_does_not(#[case] fails: Option<&str>) {
    let rig = Rig::new("dgx-a100");
    write(&rig, pci(&rig, 3), "-1");
    if let Some(call) = fails {
        rig.node.set_fault(call, None, NOT_SUPPORTED).unwrap();
    }
    rig.node.trace().unwrap();
    let report = rig.backend().survey_devices();
    let expected = rig.node.list_gpus().unwrap();
    for (device, gpu) in report.devices.iter().zip(&expected) {
        assert_eq!(device.numa, gpu.numa);
        assert_eq!(device.failures, []);
    }
    let calls = rig.node.traced_calls().unwrap();
    let asked = calls.iter().filter(|call| call.contains("Affinity"));
    assert_eq!(
        asked.count(),
        1 + usize::from(fails.is_some()),
        "only the one card is asked for"
    );
}

#[test]
fn what_nobody_knows_is_no_node_and_no_failure() {
    let rig = Rig::new("dgx-a100");
    write(&rig, pci(&rig, 3), "-1");
    for call in CALLS {
        rig.node.set_fault(call, None, NOT_SUPPORTED).unwrap();
    }
    let report = rig.backend().survey_devices();
    assert_eq!(report.devices[3].numa, None);
    assert_eq!(report.devices[3].failures, []);
    assert_eq!(
        report.devices[2].numa,
        rig.node.list_gpus().unwrap()[2].numa
    );
}

#[test]
fn an_old_driver_that_cannot_be_asked_is_no_failure() {
    let rig = Rig::new("dgx1-v100");
    rig.remove_symbols(&CALLS);
    write(&rig, pci(&rig, 0), "-1");
    let report = rig.backend().survey_devices();
    assert_eq!(report.devices[0].numa, None);
    assert_eq!(report.devices[0].failures, []);
}

#[test]
fn the_node_of_a_cards_own_memory_is_not_told_but_that_of_the_processors() {
    let rig = Rig::new("gb200-nvl");
    let state = rig.node.node_state().unwrap();
    for (at, gpu) in state.gpus.iter().enumerate() {
        write(&rig, pci(&rig, at), &gpu.memory_numa.unwrap().to_string());
    }
    let told: Vec<_> = rig
        .backend()
        .survey_devices()
        .devices
        .iter()
        .map(|d| d.numa)
        .collect();
    assert_eq!(told, [Some(0), Some(0), Some(1), Some(1)]);
}

#[test]
fn mig_devices_have_the_node_of_their_card_however_it_is_known() {
    let rig = Rig::new("a100-mig");
    for card in 0..rig.node.list_gpus().unwrap().len() {
        write(&rig, pci(&rig, card), "-1");
    }
    let report = rig.backend().survey_devices();
    let mut parts = BTreeSet::new();
    for device in &report.devices {
        if let Kind::Partition { parent, .. } = &device.kind {
            let card = report.devices.iter().find(|card| card.id == *parent);
            assert_eq!(device.numa, card.unwrap().numa);
            parts.insert(device.numa);
        }
    }
    let known: Vec<_> = rig
        .node
        .list_gpus()
        .unwrap()
        .iter()
        .map(|g| g.numa)
        .collect();
    assert!(
        parts.len() > 1 && parts.iter().all(|node| known.contains(node)),
        "{parts:?}"
    );
    assert!(!parts.contains(&None));
}
