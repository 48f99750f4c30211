//! NUMA node of a card from NVML, for cards whose node the PCI bus does not show.

use probe::sysfs::NumaNodes;

/// Returns the NUMA node in NVML's memory affinity of the card, or else in its CPU affinity; `None`
/// if neither leads to exactly one node with processors. A failed call counts as no answer, not as
/// a failure of the card.
///
/// `nvmlDeviceGetNumaNodeId`, the node of a card's own memory, is not used: that node has no
/// processors, so the kubelet cannot align a container with it.
pub(super) fn by_driver(machine: &NumaNodes, card: nvml::DeviceHandle<'_>) -> Option<u32> {
    // If the kernel shows no nodes, the driver's answer cannot be verified.
    if !machine.shows_nodes() {
        return None;
    }
    let memory = card.memory_affinity().unwrap_or_default();
    machine.one_of(memory).or_else(|| {
        let near = card.cpu_affinity().unwrap_or_default();
        machine.one_of(near.into_iter().filter_map(|cpu| machine.node_of(cpu)))
    })
}
