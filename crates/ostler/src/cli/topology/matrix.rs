//! Matrix of the connections between cards, with the codes of `nvidia-smi topo -m`.

use model::Ancestor;
use place::{CardConnection, CardTopology};
use rules::Vendor;

use super::{card_label, card_pairs, choose_vendor, product_label};
use crate::cli::table::new_table;

/// Codes other than those of direct links, nearest first, with their meaning. All but `BRD` and `?`
/// are those of `nvidia-smi topo -m`.
const LEGEND: [(&str, &str); 7] = [
    ("BRD", "on one board"),
    ("PIX", "one PCIe switch"),
    ("PXB", "several PCIe switches"),
    ("PHB", "one PCIe host bridge"),
    ("NODE", "one NUMA node"),
    ("SYS", "nothing closer than the machine"),
    ("?", "nothing is known of the way"),
];

/// Makes the matrix, with a legend of the codes in it.
pub(super) fn format_matrix(topology: &CardTopology<'_>) -> String {
    let count = topology.cards.len();
    if count == 0 {
        return "no cards\n".to_owned();
    }
    let mut cells = vec![vec!["-".to_owned(); count]; count];
    let words = choose_vendor(topology);
    for (a, b, way) in card_pairs(topology) {
        cells[a][b] = cell(words, &way);
        cells[b][a] = cell(words, &way);
    }
    let names: Vec<String> = (0..count).map(|at| card_label(topology, at)).collect();
    let mut header = vec![""];
    header.extend(names.iter().map(String::as_str));
    header.extend(["NUMA", "MODEL"]);
    let mut rows = new_table(&header);
    for (at, row) in cells.iter().enumerate() {
        let device = &topology.cards[at].device;
        let numa = device
            .numa
            .map_or_else(|| "-".to_owned(), |n| n.to_string());
        let mut line = vec![names[at].clone()];
        line.extend(row.iter().cloned());
        line.extend([numa, product_label(device).to_owned()]);
        rows.add_row(line);
    }
    rows.trim_fmt() + "\n" + &format_legend(words, &cells)
}

/// Code of a pair: the direct links first, then the path through PCIe.
fn cell(words: &Vendor, way: &CardConnection) -> String {
    let mark = words.link_mark;
    let direct = match (way.switched, way.lanes) {
        (true, _) => Some(format!("{mark}S")),
        (false, 0) => None,
        (false, lanes) => Some(format!("{mark}{lanes}")),
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

fn format_legend(words: &Vendor, cells: &[Vec<String>]) -> String {
    let parts = || cells.iter().flatten().flat_map(|cell| cell.split('+'));
    let number = |part: &str| part.strip_prefix(words.link_mark)?.parse::<u32>().ok();
    let occurs = |code: &str| parts().any(|part| part == code);
    let (links, switch) = (
        format!("{}n", words.link_mark),
        format!("{}S", words.link_mark),
    );
    let mut known = Vec::new();
    if parts().any(|part| number(part).is_some()) {
        known.push((&*links, format!("n {}s between the two", words.link)));
    }
    if occurs(&switch) {
        let text = format!("{}: every pair on it is equal", words.switch);
        known.push((&*switch, text));
    }
    let others = LEGEND.iter().filter(|(code, _)| occurs(code));
    known.extend(others.map(|(code, text)| (*code, (*text).to_owned())));
    let lines: String = known
        .iter()
        .map(|(code, text)| format!("  {code:<5} {text}\n"))
        .collect();
    match lines.is_empty() {
        true => lines,
        false => format!("\n{lines}"),
    }
}
