//! `/sys`: PCI functions below their bridges, and NUMA nodes.

use super::{
    HostTree,
    config::{self, PciFunction},
    draw,
};
use crate::state::{Gpu, GpuModel, NodeState, NumaNode, OtherFunction};

/// Adds the files below `/sys` that all machines with a PCI bus have.
pub(super) fn add_sys(tree: &mut HostTree, state: &NodeState) {
    if state.machine.platform.has_bus() {
        module(tree, state);
        for (position, gpu) in state.gpus.iter().enumerate() {
            if let Some(model) = state.models.get(&gpu.model) {
                add_card(tree, state, (position, gpu), model);
            }
        }
    }
    for (position, other) in state.others.iter().enumerate() {
        add_other_function(tree, state, state.gpus.len() + position, other);
    }
    add_numa_nodes(tree, &state.numa);
}

/// Adds the module folder of the kernel driver.
fn module(tree: &mut HostTree, state: &NodeState) {
    let at = "sys/module/nvidia";
    tree.add_file(
        format!("{at}/version"),
        format!("{}\n", state.driver.version),
    );
    tree.add_file(format!("{at}/initstate"), "live\n");
}

fn add_card(
    tree: &mut HostTree,
    state: &NodeState,
    (position, gpu): (usize, &Gpu),
    model: &GpuModel,
) {
    let at = add_bridges(tree, &gpu.under, &gpu.pci.to_string());
    let function = config::card_function(position, gpu, model, state.machine.vgpu.as_ref());
    function.add_function(tree, &at);
    let files = [
        ("current_link_speed", speed(gpu.sensors.pcie_generation)),
        ("current_link_width", gpu.sensors.pcie_width.to_string()),
        ("max_link_speed", speed(u64::from(model.pcie_generation))),
        ("max_link_width", "16".to_owned()),
    ];
    for (name, value) in files {
        tree.add_file(format!("{at}/{name}"), format!("{value}\n"));
    }
    draw::add_drm(tree, gpu, model, &at);
    finish_function(tree, state, (&at, gpu.numa), ("nvidia", &function));
}

fn add_other_function(
    tree: &mut HostTree,
    state: &NodeState,
    position: usize,
    other: &OtherFunction,
) {
    let at = add_bridges(tree, &other.under, &other.pci.to_string());
    let function = config::other(position, other);
    function.add_function(tree, &at);
    finish_function(tree, state, (&at, other.numa), (&other.driver, &function));
}

/// Adds the files of a function besides its PCI configuration: NUMA node, driver, links.
fn finish_function(
    tree: &mut HostTree,
    state: &NodeState,
    (at, numa): (&str, Option<u32>),
    (driver, function): (&str, &PciFunction),
) {
    let address = function.pci.to_string();
    let id = format!("{:04x}:{:04x}", function.vendor, function.device);
    let uevent = uevent(&address, driver, &id);
    tree.add_file(format!("{at}/uevent"), format!("{uevent}\n"));
    add_numa_files(tree, state, at, numa);
    bind_driver(tree, at, driver, &address);
    // Each function has an IOMMU group of its own, numbered by its position.
    let group = format!("sys/kernel/iommu_groups/{}", function.position);
    tree.add_relative_link(format!("{group}/devices/{address}"), at);
    tree.add_relative_link(format!("{at}/iommu_group"), &group);
}

/// Adds the bridges above a function and returns its path below `/sys/devices`. Bridges are
/// functions themselves.
fn add_bridges(tree: &mut HostTree, under: &str, address: &str) -> String {
    let mut at = "sys/devices".to_owned();
    for part in under.split('/').filter(|part| is_safe_part(part)) {
        at = format!("{at}/{part}");
        if let Ok(pci) = part.parse::<crate::bus::BusId>() {
            config::bridge(pci).add_function(tree, &at);
            // Linux writes -1 if the firmware gives no proximity domain.
            tree.add_file(format!("{at}/numa_node"), "-1\n");
            tree.add_relative_link(format!("sys/bus/pci/devices/{part}"), &at);
        }
    }
    at = format!("{at}/{address}");
    tree.add_relative_link(format!("sys/bus/pci/devices/{address}"), &at);
    at
}

/// True if a path component is safe: one from a hand-written file must not lead out of the tree.
fn is_safe_part(part: &str) -> bool {
    !part.is_empty() && part != "." && part != ".."
}

fn add_numa_files(tree: &mut HostTree, state: &NodeState, at: &str, numa: Option<u32>) {
    let node = numa.map_or("-1".to_owned(), |node| node.to_string());
    tree.add_file(format!("{at}/numa_node"), format!("{node}\n"));
    tree.add_file(
        format!("{at}/local_cpulist"),
        format!("{}\n", state.cpus_near(numa)),
    );
}

fn bind_driver(tree: &mut HostTree, at: &str, driver: &str, address: &str) {
    let driver = driver.replace('/', "-");
    tree.add_file(format!("sys/bus/pci/drivers/{driver}/uevent"), "");
    tree.add_relative_link(format!("sys/bus/pci/drivers/{driver}/{address}"), at);
    tree.add_relative_link(
        format!("{at}/driver"),
        format!("sys/bus/pci/drivers/{driver}"),
    );
}

fn uevent(address: &str, driver: &str, id: &str) -> String {
    let id = id.to_uppercase();
    format!("DRIVER={driver}\nPCI_ID={id}\nPCI_SLOT_NAME={address}")
}

fn speed(generation: u64) -> String {
    let rate = match generation {
        1 => "2.5",
        2 => "5.0",
        3 => "8.0",
        4 => "16.0",
        5 => "32.0",
        6 => "64.0",
        _ => return "Unknown".to_owned(),
    };
    format!("{rate} GT/s PCIe")
}

fn add_numa_nodes(tree: &mut HostTree, nodes: &[NumaNode]) {
    let online: Vec<_> = nodes.iter().map(|node| node.node.to_string()).collect();
    let online = format!("{}\n", online.join(","));
    tree.add_file("sys/devices/system/node/online", online.clone());
    tree.add_file("sys/devices/system/node/possible", online);
    for NumaNode {
        node,
        cpus,
        memory_gib,
    } in nodes
    {
        let at = format!("sys/devices/system/node/node{node}");
        let total = memory_gib.saturating_mul(1 << 20);
        let free = total / 10 * 9;
        let used = total - free;
        let line = |name: &str, kib: u64| format!("Node {node} {name:<15} {kib:>8} kB\n");
        let meminfo = line("MemTotal:", total) + &line("MemFree:", free) + &line("MemUsed:", used);
        tree.add_file(format!("{at}/cpulist"), format!("{cpus}\n"));
        tree.add_file(format!("{at}/meminfo"), meminfo);
    }
}
