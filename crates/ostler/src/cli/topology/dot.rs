//! The topology as a graph for Graphviz: `ostler topology -o dot | neato -Tpng`.

use std::collections::BTreeMap;

use model::Ancestor;
use place::CardTopology;

use super::{card_label, card_pairs, choose_vendor, describe_pair, product_label};

/// Makes an undirected graph. NUMA nodes are clusters, direct links are solid edges, and PCIe
/// switches are dashed ones.
pub(super) fn graph(topology: &CardTopology<'_>) -> String {
    let mut text = "graph topology {\n  node [shape=box style=rounded];\n".to_owned();
    let mut nodes: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
    for (at, entry) in topology.cards.iter().enumerate() {
        nodes.entry(entry.device.numa).or_default().push(at);
    }
    for (numa, cards) in nodes {
        let lines: String = cards.iter().map(|at| card_node(topology, *at)).collect();
        text += &match numa {
            Some(numa) => {
                let label = format!("    label=\"NUMA node {numa}\";\n");
                format!("  subgraph cluster_{numa} {{\n{label}{lines}  }}\n")
            }
            None => lines,
        };
    }
    let mut on_switch = vec![false; topology.cards.len()];
    for (a, b, way) in card_pairs(topology) {
        if way.switched {
            (on_switch[a], on_switch[b]) = (true, true);
        } else if way.lanes > 0 {
            let (lanes, label) = (way.lanes, describe_pair(choose_vendor(topology), &way));
            text += &format!("  c{a} -- c{b} [penwidth={lanes} label=\"{label}\"];\n");
        }
        if matches!(way.ancestor, Some(Ancestor::Board | Ancestor::Switch)) {
            text += &format!("  c{a} -- c{b} [style=dashed label=\"PCIe switch\"];\n");
        }
    }
    if on_switch.contains(&true) {
        let switch = choose_vendor(topology).switch;
        text += &format!("  switch [label=\"{switch}\" shape=ellipse];\n");
        for at in (0..on_switch.len()).filter(|at| on_switch[*at]) {
            text += &format!("  c{at} -- switch [penwidth=2];\n");
        }
    }
    text + "}\n"
}

fn card_node(topology: &CardTopology<'_>, at: usize) -> String {
    let device = &topology.cards[at].device;
    let label = format!("{}\\n{}", card_label(topology, at), product_label(device));
    format!("    c{at} [label=\"{}\"];\n", label.replace('"', "'"))
}
