//! NUMA node of a card as NVML tells it, for cards whose node the PCI bus does not tell.

use probe::sysfs::NumaNodes;

/// Returns the node that NVML tells, by near memory or else by near processors. A call that fails
/// is not a failure of the card.
///
/// The node of a card's own memory (`nvmlDeviceGetNumaNodeId`) is not asked for: it has no
/// processors, so the kubelet cannot align a container with it.
pub(super) fn by_driver(machine: &NumaNodes, card: nvml::DeviceHandle<'_>) -> Option<u32> {
    // A machine with one node needs no driver call.
    if !machine.shows_nodes() {
        return None;
    }
    let memory = card.memory_affinity().unwrap_or_default();
    machine.one_of(memory).or_else(|| {
        let near = card.cpu_affinity().unwrap_or_default();
        machine.one_of(near.into_iter().filter_map(|cpu| machine.node_of(cpu)))
    })
}
