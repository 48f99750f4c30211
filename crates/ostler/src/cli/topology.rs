//! `ostler topology`: shows the links between cards, as a matrix, as data, and as a picture.

mod dot;
mod matrix;
mod svg;

use std::{io::Write, process::ExitCode};

use clap::ValueEnum;
use model::{Device, DeviceId, Index, State};
use place::{CardConnection, CardTopology};
use rules::{PLAIN, Vendor};
use serde::Serialize;

use super::{devices::DeviceSource, table};
use crate::vendors::VENDORS;

/// Show the links between cards: the matrix that placement uses.
///
/// Asks the running agent. Without an agent, reads the hardware itself and says so.
#[derive(Debug, clap::Args)]
pub(super) struct TopologyArgs {
    /// The output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: TopologyFormat,

    #[command(flatten)]
    sight: DeviceSource,
}

/// Format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum TopologyFormat {
    /// A matrix
    #[default]
    Table,
    /// JSON: the cards, and the pairs with their scores
    Json,
    /// A graph for Graphviz
    Dot,
    /// An SVG picture
    Svg,
}

/// Topology as JSON.
#[derive(Debug, Serialize)]
struct TopologyData<'a> {
    cards: Vec<CardData<'a>>,
    pairs: Vec<PairData<'a>>,
}

#[derive(Debug, Serialize)]
struct CardData<'a> {
    id: &'a DeviceId,
    index: Option<Index>,
    model: Option<&'a str>,
    pci: Option<String>,
    numa: Option<u32>,
    health: State,
}

#[derive(Debug, Serialize)]
struct PairData<'a> {
    cards: [&'a DeviceId; 2],
    #[serde(flatten)]
    way: CardConnection,
    score: u32,
}

// === impl TopologyArgs ===

impl TopologyArgs {
    pub(super) fn run_topology(self) -> anyhow::Result<ExitCode> {
        let snapshot = super::block_on(self.sight.read_devices())??.to_snapshot();
        let topology = CardTopology::from_snapshot(&snapshot);
        let output = match self.output {
            TopologyFormat::Table => matrix::format_matrix(&topology),
            TopologyFormat::Json => table::serialize_output(&picture(&topology), false)?,
            TopologyFormat::Dot => dot::graph(&topology),
            TopologyFormat::Svg => svg::draw(&topology),
        };
        std::io::stdout().write_all(output.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn picture<'a>(topology: &CardTopology<'a>) -> TopologyData<'a> {
    let cards = topology.cards.iter().map(|entry| CardData {
        id: &entry.device.id,
        index: entry.device.index,
        model: entry.device.product_name(),
        pci: entry.device.pci.map(|pci| pci.to_string()),
        numa: entry.device.numa,
        health: entry.verdict.state,
    });
    let id = |at: usize| &topology.cards[at].device.id;
    let pairs = card_pairs(topology).map(|(a, b, way)| PairData {
        cards: [id(a), id(b)],
        way,
        score: topology.score_connection(a, b, VENDORS),
    });
    TopologyData {
        cards: cards.collect(),
        pairs: pairs.collect(),
    }
}

/// Every pair of cards once, in the order of the cards, with the path between them.
fn card_pairs(topology: &CardTopology<'_>) -> impl Iterator<Item = (usize, usize, CardConnection)> {
    let count = topology.cards.len();
    let pair = move |a: usize| (a + 1..count).map(move |b| (a, b));
    (0..count)
        .flat_map(pair)
        .map(|(a, b)| (a, b, topology.find_connection(a, b)))
}

/// Short name of a card: `GPU` and its index.
fn card_label(topology: &CardTopology<'_>, at: usize) -> String {
    match topology.cards[at].device.index {
        Some(index) => format!("GPU {index}"),
        None => "GPU ?".to_owned(),
    }
}

/// Product name of a card; `-` without one.
fn product_label(device: &Device) -> &str {
    device.product_name().unwrap_or("-")
}

/// Vendor whose words for links are used: that of the cards, or plain words if there are several.
fn choose_vendor(topology: &CardTopology<'_>) -> &'static Vendor {
    let mut vendors = topology.cards.iter().map(|entry| &*entry.device.vendor);
    match vendors.next() {
        Some(first) if vendors.all(|other| other == first) => VENDORS.find_rules(first).vendor(),
        _ => &PLAIN,
    }
}

/// Describes the direct links of a pair; empty without any.
fn describe_pair(words: &Vendor, way: &CardConnection) -> String {
    if way.switched {
        words.switch.to_owned()
    } else {
        describe_links(words, way.lanes)
    }
}

/// Describes a number of links; empty for 0.
fn describe_links(words: &Vendor, lanes: u32) -> String {
    let link = words.link;
    match lanes {
        0 => String::new(),
        1 => format!("1 {link}"),
        lanes => format!("{lanes} {link}s"),
    }
}

#[cfg(test)]
mod tests;
