//! The topology as a graph for Graphviz: `ostler topology -o dot | neato -Tpng`.

use std::collections::BTreeMap;

use model::Ancestor;
use place::Topology;

use super::{joined, name, pairs, product, words};

/// Makes an undirected graph. NUMA nodes are clusters, direct links are solid edges, and PCIe
/// switches are dashed ones.
pub(super) fn graph(topology: &Topology<'_>) -> String {
    let mut text = "graph topology {\n  node [shape=box style=rounded];\n".to_owned();
    let mut nodes: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
    for (at, entry) in topology.cards.iter().enumerate() {
        nodes.entry(entry.device.numa).or_default().push(at);
    }
    for (numa, cards) in nodes {
        let lines: String = cards.iter().map(|at| card(topology, *at)).collect();
        text += &match numa {
            Some(numa) => {
                let label = format!("    label=\"NUMA node {numa}\";\n");
                format!("  subgraph cluster_{numa} {{\n{label}{lines}  }}\n")
            }
            None => lines,
        };
    }
    let mut on_switch = vec![false; topology.cards.len()];
    for (a, b, way) in pairs(topology) {
        if way.switched {
            (on_switch[a], on_switch[b]) = (true, true);
        } else if way.lanes > 0 {
            let (lanes, label) = (way.lanes, joined(words(topology), &way));
            text += &format!("  c{a} -- c{b} [penwidth={lanes} label=\"{label}\"];\n");
        }
        if matches!(way.ancestor, Some(Ancestor::Board | Ancestor::Switch)) {
            text += &format!("  c{a} -- c{b} [style=dashed label=\"PCIe switch\"];\n");
        }
    }
    if on_switch.contains(&true) {
        let switch = words(topology).switch;
        text += &format!("  switch [label=\"{switch}\" shape=ellipse];\n");
        for at in (0..on_switch.len()).filter(|at| on_switch[*at]) {
            text += &format!("  c{at} -- switch [penwidth=2];\n");
        }
    }
    text + "}\n"
}

fn card(topology: &Topology<'_>, at: usize) -> String {
    let device = &topology.cards[at].device;
    let label = format!("{}\\n{}", name(topology, at), product(device));
    format!("    c{at} [label=\"{}\"];\n", label.replace('"', "'"))
}
