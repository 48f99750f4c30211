//! `/sys`: PCI functions below their bridges, and NUMA nodes.

use super::{
    Tree,
    config::{self, Function},
    draw,
};
use crate::state::{Gpu, Model, NumaNode, Other, State};

/// Adds the files below `/sys` that all machines with a PCI bus have.
pub(super) fn add(tree: &mut Tree, state: &State) {
    if state.machine.platform.has_bus() {
        module(tree, state);
        for (position, gpu) in state.gpus.iter().enumerate() {
            if let Some(model) = state.models.get(&gpu.model) {
                card(tree, state, (position, gpu), model);
            }
        }
    }
    for (position, other) in state.others.iter().enumerate() {
        device(tree, state, state.gpus.len() + position, other);
    }
    nodes(tree, &state.numa);
}

/// Adds the module folder of the kernel driver.
fn module(tree: &mut Tree, state: &State) {
    let at = "sys/module/nvidia";
    tree.file(
        format!("{at}/version"),
        format!("{}\n", state.driver.version),
    );
    tree.file(format!("{at}/initstate"), "live\n");
}

fn card(tree: &mut Tree, state: &State, (position, gpu): (usize, &Gpu), model: &Model) {
    let at = place(tree, &gpu.under, &gpu.pci.to_string());
    let function = config::card(position, gpu, model, state.machine.vgpu.as_ref());
    function.add(tree, &at);
    let files = [
        ("current_link_speed", speed(gpu.sensors.pcie_generation)),
        ("current_link_width", gpu.sensors.pcie_width.to_string()),
        ("max_link_speed", speed(u64::from(model.pcie_generation))),
        ("max_link_width", "16".to_owned()),
    ];
    for (name, value) in files {
        tree.file(format!("{at}/{name}"), format!("{value}\n"));
    }
    draw::add(tree, gpu, model, &at);
    finish(tree, state, (&at, gpu.numa), ("nvidia", &function));
}

fn device(tree: &mut Tree, state: &State, position: usize, other: &Other) {
    let at = place(tree, &other.under, &other.pci.to_string());
    let function = config::other(position, other);
    function.add(tree, &at);
    finish(tree, state, (&at, other.numa), (&other.driver, &function));
}

/// Adds the files of a function besides its PCI configuration: NUMA node, driver, links.
fn finish(
    tree: &mut Tree,
    state: &State,
    (at, numa): (&str, Option<u32>),
    (driver, function): (&str, &Function),
) {
    let address = function.pci.to_string();
    let id = format!("{:04x}:{:04x}", function.vendor, function.device);
    let uevent = uevent(&address, driver, &id);
    tree.file(format!("{at}/uevent"), format!("{uevent}\n"));
    near(tree, state, at, numa);
    bind(tree, at, driver, &address);
    // Each function has an IOMMU group of its own, numbered by its position.
    let group = format!("sys/kernel/iommu_groups/{}", function.position);
    tree.link(format!("{group}/devices/{address}"), at);
    tree.link(format!("{at}/iommu_group"), &group);
}

/// Adds the bridges above a function and returns its path below `/sys/devices`. Bridges are
/// functions themselves.
fn place(tree: &mut Tree, under: &str, address: &str) -> String {
    let mut at = "sys/devices".to_owned();
    for part in under.split('/').filter(|part| usable(part)) {
        at = format!("{at}/{part}");
        if let Ok(pci) = part.parse::<crate::bus::BusId>() {
            config::bridge(pci).add(tree, &at);
            // Linux writes -1 if the firmware gives no proximity domain.
            tree.file(format!("{at}/numa_node"), "-1\n");
            tree.link(format!("sys/bus/pci/devices/{part}"), &at);
        }
    }
    at = format!("{at}/{address}");
    tree.link(format!("sys/bus/pci/devices/{address}"), &at);
    at
}

/// True if a path component is safe: one from a hand-written file must not lead out of the tree.
fn usable(part: &str) -> bool {
    !part.is_empty() && part != "." && part != ".."
}

fn near(tree: &mut Tree, state: &State, at: &str, numa: Option<u32>) {
    let node = numa.map_or("-1".to_owned(), |node| node.to_string());
    tree.file(format!("{at}/numa_node"), format!("{node}\n"));
    tree.file(
        format!("{at}/local_cpulist"),
        format!("{}\n", state.cpus(numa)),
    );
}

fn bind(tree: &mut Tree, at: &str, driver: &str, address: &str) {
    let driver = driver.replace('/', "-");
    tree.file(format!("sys/bus/pci/drivers/{driver}/uevent"), "");
    tree.link(format!("sys/bus/pci/drivers/{driver}/{address}"), at);
    tree.link(
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

fn nodes(tree: &mut Tree, nodes: &[NumaNode]) {
    let online: Vec<_> = nodes.iter().map(|node| node.node.to_string()).collect();
    let online = format!("{}\n", online.join(","));
    tree.file("sys/devices/system/node/online", online.clone());
    tree.file("sys/devices/system/node/possible", online);
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
        tree.file(format!("{at}/cpulist"), format!("{cpus}\n"));
        tree.file(format!("{at}/meminfo"), meminfo);
    }
}
