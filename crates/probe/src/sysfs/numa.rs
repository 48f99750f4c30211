//! NUMA node of a card: the node with the near processors, as the kubelet's topology manager
//! understands it.
//!
//! The first source is `numa_node` of the PCI function. Some firmware leaves it out (-1) or names a
//! node that does not exist, or the NUMA node of a card's own memory (Grace). The second source are
//! the bridges above the card. The vendor's driver is the last source, outside this module. If no
//! source is certain, the card has no node: a wrong one makes the topology manager reject pods
//! (NVIDIA/k8s-device-plugin issues 439, 546 and 1643).

use std::{collections::BTreeMap, ops::RangeInclusive};

use model::PciAddress;

use super::{HostFiles, bus};

/// Folder in which the kernel shows the NUMA nodes.
const FOLDER: &str = "/sys/devices/system/node";

/// NUMA nodes of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaNodes {
    /// Nodes that have processors, with these processors. Empty if the kernel shows no nodes.
    nodes: BTreeMap<u32, CpuSet>,
}

/// Set of processor numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CpuSet(Vec<RangeInclusive<u32>>);

// === impl NumaNodes ===

impl NumaNodes {
    /// Reads the nodes that the kernel shows. Nodes without processors are left out: these are
    /// memory only, such as that of a card.
    pub fn read_nodes(files: &HostFiles) -> Self {
        let number = |name: &String| name.strip_prefix("node")?.parse().ok();
        let names = files.list_names(FOLDER);
        let nodes = names.iter().filter_map(number).filter_map(|node: u32| {
            let cpus = files.read_trimmed(&format!("{FOLDER}/node{node}/cpulist"), None)?;
            (!cpus.is_empty()).then(|| (node, CpuSet::parse_cpu_list(&cpus)))
        });
        Self {
            nodes: nodes.collect(),
        }
    }

    /// Finds a card's node in the kernel's files: the card's `own` node, or the only node of the
    /// machine, or the node of the closest bridge that has one. `None` if no source names an
    /// existing node.
    pub fn by_bus(&self, files: &HostFiles, card: PciAddress, own: Option<u32>) -> Option<u32> {
        let own = own.filter(|node| self.is_known_node(*node));
        own.or_else(|| self.only()).or_else(|| {
            let bridges = bus::bridges(files, card).into_iter();
            bridges
                .filter_map(|bridge| bus::read_numa_node(files, bridge, card))
                .find(|node| self.is_known_node(*node))
        })
    }

    /// Returns true if the kernel shows nodes. Without them nodes cannot be verified.
    pub fn shows_nodes(&self) -> bool {
        !self.nodes.is_empty()
    }

    /// Returns the node with processors among `some`; `None` if there are several, or none.
    pub fn one_of(&self, some: impl IntoIterator<Item = u32>) -> Option<u32> {
        let mut known = some
            .into_iter()
            .filter(|node| self.nodes.contains_key(node));
        let first = known.next()?;
        known.all(|node| node == first).then_some(first)
    }

    /// Finds the node of a processor.
    pub fn node_of(&self, cpu: u32) -> Option<u32> {
        let mut nodes = self.nodes.iter();
        nodes.find_map(|(node, cpus)| cpus.contains_cpu(cpu).then_some(*node))
    }

    /// Returns true if the node exists and has processors. If the kernel shows no nodes, every
    /// number is accepted.
    fn is_known_node(&self, node: u32) -> bool {
        self.nodes.is_empty() || self.nodes.contains_key(&node)
    }

    /// Returns the node of a machine that has only one.
    fn only(&self) -> Option<u32> {
        self.one_of(self.nodes.keys().copied())
    }
}

// === impl CpuSet ===

impl CpuSet {
    /// Parses a list of the kernel: `0-15,128-143`. Parts that are not numbers are left out.
    fn parse_cpu_list(text: &str) -> Self {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let [first, last] = [first, last].map(|number| number.trim().parse().ok());
            Some(first?..=last?)
        };
        Self(text.split(',').filter_map(range).collect())
    }

    fn contains_cpu(&self, cpu: u32) -> bool {
        self.0.iter().any(|range| range.contains(&cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(nodes: &[(u32, &str)]) -> NumaNodes {
        let root = tempfile::tempdir().unwrap();
        for (node, cpus) in nodes {
            let folder = root.path().join(format!("{}/node{node}", &FOLDER[1..]));
            fs_err::create_dir_all(&folder).unwrap();
            fs_err::write(folder.join("cpulist"), format!("{cpus}\n")).unwrap();
        }
        NumaNodes::read_nodes(&HostFiles::new(root.path(), std::sync::Arc::default()))
    }

    #[test]
    fn a_node_counts_if_it_has_processors() {
        let grace = machine(&[(0, "0-71"), (1, "72-143"), (2, ""), (10, "")]);
        let has: Vec<u32> = (0..12).filter(|node| grace.is_known_node(*node)).collect();
        assert_eq!(has, [0, 1]);
        assert_eq!(grace.only(), None);
        assert_eq!(machine(&[(0, "0-71"), (1, "")]).only(), Some(0));
    }

    #[test]
    fn a_machine_that_shows_no_nodes_believes_what_it_is_told_and_makes_nothing_up() {
        let none = machine(&[]);
        assert!(none.is_known_node(3));
        assert_eq!((none.only(), none.one_of([3])), (None, None));
    }

    #[test]
    fn of_several_nodes_none_is_certain() {
        let two = machine(&[(0, "0-1,4-5"), (1, "2-3,6,7")]);
        let of = |cpus: &[u32]| two.one_of(cpus.iter().filter_map(|cpu| two.node_of(*cpu)));
        assert_eq!(of(&[2, 3, 7]), Some(1));
        assert_eq!(of(&[4, 99]), Some(0));
        assert_eq!(of(&[1, 2]), None);
        assert_eq!(of(&[]), None);
        assert_eq!(two.one_of([1, 9]), Some(1));
    }
}
