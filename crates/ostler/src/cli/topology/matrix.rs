//! The matrix for people, in the letters that `nvidia-smi topo` made known.

use model::Ancestor;
use place::{Topology, Way};

use super::{name, pairs, product};
use crate::cli::table::table;

/// What the letters mean, nearest first.
const LEGEND: [(&str, &str); 9] = [
    ("NVn", "n NVLinks between the two"),
    ("NVS", "NVSwitch: every pair on it is equal"),
    ("BRD", "on one board"),
    ("PIX", "one PCIe switch"),
    ("PXB", "several PCIe switches"),
    ("PHB", "one PCIe host bridge"),
    ("NODE", "one NUMA node"),
    ("SYS", "nothing closer than the machine"),
    ("?", "nothing is known of the way"),
];

/// The matrix with a legend of what occurs in it.
pub(super) fn page(topology: &Topology<'_>) -> String {
    let count = topology.cards.len();
    if count == 0 {
        return "no cards\n".to_owned();
    }
    let mut cells = vec![vec!["-".to_owned(); count]; count];
    for (a, b, way) in pairs(topology) {
        cells[a][b] = cell(&way);
        cells[b][a] = cell(&way);
    }
    let names: Vec<String> = (0..count).map(|at| name(topology, at)).collect();
    let mut header = vec![""];
    header.extend(names.iter().map(String::as_str));
    header.extend(["NUMA", "MODEL"]);
    let mut rows = table(&header);
    for (at, row) in cells.iter().enumerate() {
        let device = &topology.cards[at].device;
        let numa = device
            .numa
            .map_or_else(|| "-".to_owned(), |n| n.to_string());
        let mut line = vec![names[at].clone()];
        line.extend(row.iter().cloned());
        line.extend([numa, product(device).to_owned()]);
        rows.add_row(line);
    }
    rows.trim_fmt() + "\n" + &legend(&cells)
}

/// The direct way first, then the way through the machine.
fn cell(way: &Way) -> String {
    let direct = match (way.fabric, way.lanes) {
        (true, _) => Some("NVS".to_owned()),
        (false, 0) => None,
        (false, lanes) => Some(format!("NV{lanes}")),
    };
    let through = match (way.ancestor, way.same_numa) {
        (Some(Ancestor::Board), _) => Some("BRD"),
        (Some(Ancestor::Switch), _) => Some("PIX"),
        (Some(Ancestor::Switches), _) => Some("PXB"),
        (Some(Ancestor::HostBridge), _) => Some("PHB"),
        (Some(Ancestor::Node), _) | (None, Some(true)) => Some("NODE"),
        (Some(Ancestor::System), _) | (None, Some(false)) => Some("SYS"),
        (None, None) => None,
    };
    match (direct, through) {
        (Some(direct), Some(through)) => format!("{direct}+{through}"),
        (Some(direct), None) => direct,
        (None, Some(through)) => through.to_owned(),
        (None, None) => "?".to_owned(),
    }
}

fn legend(cells: &[Vec<String>]) -> String {
    let parts = || cells.iter().flatten().flat_map(|cell| cell.split('+'));
    let occurs = |code: &str| match code {
        "NVn" => parts().any(|part| part.starts_with("NV") && part != "NVS"),
        _ => parts().any(|part| part == code),
    };
    let known = LEGEND.iter().filter(|(code, _)| occurs(code));
    let lines: String = known
        .map(|(code, text)| format!("  {code:<5} {text}\n"))
        .collect();
    match lines.is_empty() {
        true => lines,
        false => format!("\n{lines}"),
    }
}
