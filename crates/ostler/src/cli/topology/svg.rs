//! The topology as an SVG picture. The cards lie on a ring, in the order of NUMA nodes and PCIe
//! switches. NVLinks are chords, thicker with more links; an NVSwitch is in the middle. The colours
//! follow the reader's light or dark scheme.

mod ring;

use std::collections::BTreeSet;

use model::State;
use place::CardTopology;
use rules::Vendor;

use self::ring::RingLayout;
use super::{card_label, card_pairs, choose_vendor, describe_pair, product_label};

/// Height of one line of the legend, in pixels.
const LINE: f64 = 24.0;

/// Rules without CSS variables: viewers other than browsers do not know them.
const STYLE: &str = "\
.ground{fill:#fff}text{font-family:system-ui,sans-serif;fill:#1f2328}.dim{fill:#59636e}\
.card{fill:#f6f8fa;stroke:#8c959f;stroke-width:1.5}.bad{stroke:#cf222e;stroke-width:3}\
.link{stroke:#2f7d32;fill:none;stroke-linecap:round;opacity:.8}\
.hub{fill:#f6f8fa;stroke:#2f7d32;stroke-width:3}\
.pcie{stroke:#b45309;stroke-width:4;fill:none;stroke-linecap:round}\
.numa{stroke:#0969da;fill:none;opacity:.1}.odd{opacity:.2}\
@media(prefers-color-scheme:dark){\
.ground{fill:#0d1117}text{fill:#e6edf3}.dim{fill:#9198a1}\
.card{fill:#1c2129;stroke:#656c76}.bad{stroke:#f85149}.link{stroke:#57ab5a}\
.hub{fill:#1c2129;stroke:#57ab5a}.pcie{stroke:#e3a04f}.numa{stroke:#539bf5}}";

/// Draws a topology.
pub(super) fn draw(topology: &CardTopology<'_>) -> String {
    let ring = RingLayout::from_topology(topology);
    let keys = legend_entries(topology, &ring);
    let width = 2.0 * ring.middle.0;
    let top = ring.middle.1 * 2.0;
    let height = top + LINE * keys.len().max(1) as f64 + 12.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n",
        picture_title(topology),
    );
    svg += &draw_text(ring.middle.0, 32.0, "", 20, &picture_title(topology));
    svg += &bands(&ring);
    svg += &draw_links(topology, &ring);
    svg += &draw_cards(topology, &ring);
    for (nth, (mark, words)) in keys.iter().enumerate() {
        let y = top + LINE * nth as f64;
        svg += &format!("<g transform=\"translate(32 {y:.1})\">{mark}</g>\n");
        svg += &format!(
            "<text x=\"96\" y=\"{:.1}\" font-size=\"13\">{words}</text>\n",
            y + 4.5
        );
    }
    svg + "</svg>\n"
}

/// Title of the picture: the number of cards of each model.
fn picture_title(topology: &CardTopology<'_>) -> String {
    let mut models: Vec<&str> = Vec::new();
    for entry in &topology.cards {
        let model = product_label(&entry.device);
        if !models.contains(&model) {
            models.push(model);
        }
    }
    let count = |model: &&str| {
        topology
            .cards
            .iter()
            .filter(|e| product_label(&e.device) == *model)
            .count()
    };
    let parts: Vec<String> = models
        .iter()
        .map(|model| format!("{} × {}", count(model), escape(model)))
        .collect();
    match parts.is_empty() {
        true => "no cards".to_owned(),
        false => parts.join(", "),
    }
}

/// Draws the NUMA nodes behind the cards, and the PCIe switches around them.
fn bands(ring: &RingLayout) -> String {
    let mut svg = String::new();
    for (nth, (numa, arc)) in ring.nodes.iter().enumerate() {
        let odd = if nth % 2 == 1 { " odd" } else { "" };
        let (path, wide) = (ring.arc_path(arc, ring.radius), ring::BAND);
        svg += &format!("<path class=\"numa{odd}\" stroke-width=\"{wide:.0}\" d=\"{path}\"/>\n");
        let (x, y) = ring.point_at(arc.middle(), ring.radius + ring::BAND / 2.0 + 40.0);
        let label = match numa {
            Some(numa) => format!("NUMA {numa}"),
            None => "NUMA ?".to_owned(),
        };
        svg += &draw_text(x, y + 5.0, "dim", 14, &label);
    }
    for arc in &ring.switches {
        let path = ring.arc_path(arc, ring.radius + ring::BAND / 2.0 - 6.0);
        svg += &format!("<path class=\"pcie\" d=\"{path}\"><title>PCIe switch</title></path>\n");
    }
    svg
}

/// Draws the direct links, and the links to the switch.
fn draw_links(topology: &CardTopology<'_>, ring: &RingLayout) -> String {
    let mut svg = String::new();
    let mut on_switch = BTreeSet::new();
    for (a, b, way) in card_pairs(topology) {
        if way.switched {
            on_switch.extend([a, b]);
        } else if way.lanes > 0 {
            let ((ax, ay), (bx, by)) = (ring.places[a], ring.places[b]);
            let (cx, cy) = ring.bend((ax, ay), (bx, by));
            let wide = thickness(way.lanes);
            let words = format!(
                "{} – {}: {}",
                card_label(topology, a),
                card_label(topology, b),
                describe_pair(choose_vendor(topology), &way)
            );
            svg += &format!(
                "<path class=\"link\" stroke-width=\"{wide:.1}\" d=\"M{ax:.1} {ay:.1}Q{cx:.1} {cy:.1} \
                 {bx:.1} {by:.1}\"><title>{}</title></path>\n",
                escape(&words)
            );
        }
    }
    let (x, y) = ring.middle;
    for at in &on_switch {
        let (ax, ay) = ring.places[*at];
        svg += &format!(
            "<path class=\"link\" stroke-width=\"4\" d=\"M{ax:.1} {ay:.1}L{x:.1} {y:.1}\"/>\n"
        );
    }
    if !on_switch.is_empty() {
        let radius = ring.hub();
        svg += &format!("<circle class=\"hub\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"/>\n");
        svg += &draw_text(x, y + 6.0, "", 17, choose_vendor(topology).switch);
    }
    svg
}

fn draw_cards(topology: &CardTopology<'_>, ring: &RingLayout) -> String {
    let mut svg = String::new();
    for (at, entry) in topology.cards.iter().enumerate() {
        let (x, y) = ring.places[at];
        let (wide, high) = ring::CARD;
        let state = entry.verdict.state;
        let bad = if state == State::Healthy { "" } else { " bad" };
        let device = &entry.device;
        let pci = device.pci.map(|pci| pci.to_string()).unwrap_or_default();
        let words = format!("{}, {}, {state}", device.id, product_label(device));
        svg += &format!(
            "<g><title>{}</title><rect class=\"card{bad}\" x=\"{:.1}\" y=\"{:.1}\" \
             width=\"{wide}\" height=\"{high}\" rx=\"8\"/>\n",
            escape(&words),
            x - wide / 2.0,
            y - high / 2.0,
        );
        svg += &draw_text(x, y - 3.0, "", 15, &card_label(topology, at));
        svg += &draw_text(x, y + 14.0, "dim", 11, &pci);
        svg += "</g>\n";
    }
    svg
}

/// Legend: each mark of the picture, with its meaning.
fn legend_entries(topology: &CardTopology<'_>, ring: &RingLayout) -> Vec<(String, String)> {
    let ways = || card_pairs(topology).map(|(_, _, way)| way);
    let line = |class: &str, wide: f64| {
        format!("<path class=\"{class}\" stroke-width=\"{wide:.1}\" d=\"M0 0H48\"/>")
    };
    let lanes: BTreeSet<u32> = ways()
        .filter(|way| !way.switched)
        .map(|way| way.lanes)
        .collect();
    let mut keys = Vec::new();
    for lanes in lanes.into_iter().filter(|lanes| *lanes > 0) {
        let text = super::describe_links(choose_vendor(topology), lanes);
        keys.push((line("link", thickness(lanes)), text));
    }
    if ways().any(|way| way.switched) {
        let Vendor { link, switch, .. } = choose_vendor(topology);
        let text = format!("{link}s to the {switch}: every pair on it is equal");
        keys.push((line("link", 4.0), text));
    }
    if !ring.switches.is_empty() {
        keys.push((
            line("pcie", 4.0),
            "behind the same PCIe switches".to_owned(),
        ));
    }
    if !ring.nodes.is_empty() {
        keys.push((line("numa odd", 14.0), "one NUMA node".to_owned()));
    }
    if topology
        .cards
        .iter()
        .any(|e| e.verdict.state != State::Healthy)
    {
        let mark =
            "<rect class=\"card bad\" x=\"8\" y=\"-8\" width=\"32\" height=\"16\" rx=\"4\"/>";
        keys.push((mark.to_owned(), "a card that is not healthy".to_owned()));
    }
    keys
}

fn thickness(lanes: u32) -> f64 {
    1.0 + 2.0 * f64::from(lanes.min(8))
}

fn draw_text(x: f64, y: f64, class: &str, size: u32, words: &str) -> String {
    format!(
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" \
         text-anchor=\"middle\">{words}</text>\n"
    )
}

fn escape(text: &str) -> String {
    // Enough for text. Attributes have numbers and words of ours only.
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
