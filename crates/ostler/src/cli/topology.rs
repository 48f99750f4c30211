//! `ostler topology`: shows the links between cards, as a matrix, as data, and as a picture.

mod dot;
mod matrix;
mod svg;

use std::{io::Write, process::ExitCode};

use clap::ValueEnum;
use model::{Device, DeviceId, Index, State};
use place::{Topology, Way};
use rules::{PLAIN, Vendor};
use serde::Serialize;

use super::{devices::Sight, table};
use crate::vendors::VENDORS;

/// Show the links between cards: the matrix that placement uses.
///
/// Asks the running agent. Without an agent, reads the hardware itself and says so.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Form,

    #[command(flatten)]
    sight: Sight,
}

/// Format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
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
struct Picture<'a> {
    cards: Vec<Card<'a>>,
    pairs: Vec<Pair<'a>>,
}

#[derive(Debug, Serialize)]
struct Card<'a> {
    id: &'a DeviceId,
    index: Option<Index>,
    model: Option<&'a str>,
    pci: Option<String>,
    numa: Option<u32>,
    health: State,
}

#[derive(Debug, Serialize)]
struct Pair<'a> {
    cards: [&'a DeviceId; 2],
    #[serde(flatten)]
    way: Way,
    score: u32,
}

// === impl Args ===

impl Args {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        let snapshot = super::block_on(self.sight.devices())??.snapshot();
        let topology = Topology::of(&snapshot);
        let output = match self.output {
            Form::Table => matrix::page(&topology),
            Form::Json => table::text(&picture(&topology), false)?,
            Form::Dot => dot::graph(&topology),
            Form::Svg => svg::draw(&topology),
        };
        std::io::stdout().write_all(output.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn picture<'a>(topology: &Topology<'a>) -> Picture<'a> {
    let cards = topology.cards.iter().map(|entry| Card {
        id: &entry.device.id,
        index: entry.device.index,
        model: entry.device.product(),
        pci: entry.device.pci.map(|pci| pci.to_string()),
        numa: entry.device.numa,
        health: entry.verdict.state,
    });
    let id = |at: usize| &topology.cards[at].device.id;
    let pairs = pairs(topology).map(|(a, b, way)| Pair {
        cards: [id(a), id(b)],
        way,
        score: topology.worth(a, b, VENDORS),
    });
    Picture {
        cards: cards.collect(),
        pairs: pairs.collect(),
    }
}

/// Every pair of cards once, in the order of the cards, with the path between them.
fn pairs(topology: &Topology<'_>) -> impl Iterator<Item = (usize, usize, Way)> {
    let count = topology.cards.len();
    let pair = move |a: usize| (a + 1..count).map(move |b| (a, b));
    (0..count)
        .flat_map(pair)
        .map(|(a, b)| (a, b, topology.way(a, b)))
}

/// Short name of a card: `GPU` and its index.
fn name(topology: &Topology<'_>, at: usize) -> String {
    match topology.cards[at].device.index {
        Some(index) => format!("GPU {index}"),
        None => "GPU ?".to_owned(),
    }
}

/// Product name of a card; `-` without one.
fn product(device: &Device) -> &str {
    device.product().unwrap_or("-")
}

/// Vendor whose words for links are used: that of the cards, or plain words if there are several.
fn words(topology: &Topology<'_>) -> &'static Vendor {
    let mut vendors = topology.cards.iter().map(|entry| &*entry.device.vendor);
    match vendors.next() {
        Some(first) if vendors.all(|other| other == first) => VENDORS.of(first).vendor(),
        _ => &PLAIN,
    }
}

/// Describes the direct links of a pair; empty without any.
fn joined(words: &Vendor, way: &Way) -> String {
    if way.switched {
        words.switch.to_owned()
    } else {
        links(words, way.lanes)
    }
}

/// Describes a number of links; empty for 0.
fn links(words: &Vendor, lanes: u32) -> String {
    let link = words.link;
    match lanes {
        0 => String::new(),
        1 => format!("1 {link}"),
        lanes => format!("{lanes} {link}s"),
    }
}

#[cfg(test)]
mod tests;
