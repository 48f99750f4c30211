//! `/sys`: PCI functions below their bridges, and NUMA nodes.

use super::Tree;
use crate::state::{Gpu, Model, NumaNode, Other, State};

/// Adds everything below `/sys`.
pub(super) fn add(tree: &mut Tree, state: &State) {
    for gpu in &state.gpus {
        if let Some(model) = state.models.get(&gpu.model) {
            card(tree, state, gpu, model);
        }
    }
    for other in &state.others {
        function(tree, state, other);
    }
    nodes(tree, &state.numa);
}

fn card(tree: &mut Tree, state: &State, gpu: &Gpu, model: &Model) {
    let address = gpu.pci.to_string();
    let at = place(tree, &gpu.under, &address);
    let (vendor, device) = model.subsystem.split_once(':').unwrap_or(("10de", "0000"));
    let files = [
        ("vendor", "0x10de".to_owned()),
        ("device", format!("0x{}", model.device_id)),
        ("class", "0x030200".to_owned()),
        ("subsystem_vendor", format!("0x{vendor}")),
        ("subsystem_device", format!("0x{device}")),
        ("current_link_speed", speed(gpu.sensors.pcie_generation)),
        ("current_link_width", gpu.sensors.pcie_width.to_string()),
        ("max_link_speed", speed(u64::from(model.pcie_generation))),
        ("max_link_width", "16".to_owned()),
        (
            "uevent",
            uevent(&address, "nvidia", &format!("10DE:{}", model.device_id)),
        ),
    ];
    for (name, value) in files {
        tree.file(format!("{at}/{name}"), format!("{value}\n"));
    }
    near(tree, state, &at, gpu.numa);
    bind(tree, &at, "nvidia", &address);
}

fn function(tree: &mut Tree, state: &State, other: &Other) {
    let address = other.pci.to_string();
    let at = place(tree, &other.under, &address);
    let (vendor, device) = other.id.split_once(':').unwrap_or(("ffff", "ffff"));
    let files = [
        ("vendor", format!("0x{vendor}")),
        ("device", format!("0x{device}")),
        ("class", format!("0x{}", other.class)),
        ("uevent", uevent(&address, &other.driver, &other.id)),
    ];
    for (name, value) in files {
        tree.file(format!("{at}/{name}"), format!("{value}\n"));
    }
    near(tree, state, &at, other.numa);
    bind(tree, &at, &other.driver, &address);
}

/// Where a function lies below `/sys/devices`; its bridges are functions themselves.
fn place(tree: &mut Tree, under: &str, address: &str) -> String {
    let mut at = "sys/devices".to_owned();
    for part in under.split('/').filter(|part| usable(part)) {
        at = format!("{at}/{part}");
        if part.parse::<model::PciAddress>().is_ok() {
            tree.file(format!("{at}/vendor"), "0x10b5\n");
            tree.file(format!("{at}/device"), "0x9797\n");
            tree.file(format!("{at}/class"), "0x060400\n");
            tree.file(format!("{at}/numa_node"), "-1\n");
            tree.link(format!("sys/bus/pci/devices/{part}"), &at);
        }
    }
    at = format!("{at}/{address}");
    tree.link(format!("sys/bus/pci/devices/{address}"), &at);
    at
}

/// A path from a hand-written file must not lead out of the tree.
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
