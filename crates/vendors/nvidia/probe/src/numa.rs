//! The NUMA node of a card as NVML tells it, for where the bus does not.

use probe::sysfs::Machine;

/// The node that the driver tells, by near memory or else by near processors. That it does not is no
/// failure of a card. The node of a card's own memory (`nvmlDeviceGetNumaNodeId`) is not asked for: no
/// processor is in it.
pub(super) fn by_driver(machine: &Machine, card: nvml::Device<'_>) -> Option<u32> {
    // No node could be told from another.
    if !machine.shows_nodes() {
        return None;
    }
    let memory = card.memory_affinity().unwrap_or_default();
    machine.one_of(memory).or_else(|| {
        let near = card.cpu_affinity().unwrap_or_default();
        machine.one_of(near.into_iter().filter_map(|cpu| machine.node_of(cpu)))
    })
}
