//! Layout of the picture: the cards on a ring, neighbours next to each other.

use std::{collections::BTreeMap, f64::consts::TAU};

use model::Ancestor;
use place::CardTopology;

/// Width and height of a card, in pixels.
pub(super) const CARD: (f64, f64) = (108.0, 46.0);

/// Width of the band of a NUMA node, in pixels. Every card lies inside.
pub(super) const BAND: f64 = 150.0;

/// Space around the ring for the labels, in pixels.
const MARGIN: f64 = 156.0;

/// Positions of all parts of the picture.
pub(super) struct RingLayout {
    /// Middle of the ring.
    pub(super) middle: (f64, f64),
    /// Distance from the middle of the ring to the middle of a card.
    pub(super) radius: f64,
    /// Middle of each card, by its position in the topology.
    pub(super) places: Vec<(f64, f64)>,
    /// NUMA nodes around the ring; empty if no card has a known node.
    pub(super) nodes: Vec<(Option<u32>, RingArc)>,
    /// Groups of two or more cards behind the same PCIe switches.
    pub(super) switches: Vec<RingArc>,
}

/// Part of the ring, in radians from the top, clockwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RingArc {
    from: f64,
    to: f64,
}

// === impl RingLayout ===

impl RingLayout {
    pub(super) fn from_topology(topology: &CardTopology<'_>) -> Self {
        let count = topology.cards.len();
        let order = ring_order(topology);
        let step = TAU / count.max(1) as f64;
        // Cards are wider than high: neighbours at the top and the bottom need the most space.
        let radius = (CARD.0 * 1.2 * count as f64 / TAU).max(170.0);
        let middle = (radius + MARGIN, radius + MARGIN + 20.0);
        let mut ring = Self {
            middle,
            radius,
            places: vec![middle; count],
            nodes: Vec::new(),
            switches: Vec::new(),
        };
        for (nth, at) in order.iter().enumerate() {
            ring.places[*at] = ring.point_at((nth as f64 + 0.5) * step, radius);
        }
        let numa = |at: usize| topology.cards[at].device.numa;
        for part in order.chunk_by(|a, b| numa(*a) == numa(*b)) {
            ring.nodes
                .push((numa(part[0]), ring.arc(&order, part, 0.47)));
        }
        if ring.nodes.iter().all(|(numa, _)| numa.is_none()) {
            ring.nodes.clear();
        }
        let groups = groups(topology);
        let parts = order.chunk_by(|a, b| groups[*a] == groups[*b]);
        let several = parts.filter(|part| part.len() > 1);
        ring.switches = several.map(|part| ring.arc(&order, part, 0.3)).collect();
        ring
    }

    /// Point at an angle and a distance from the middle.
    pub(super) fn point_at(&self, angle: f64, distance: f64) -> (f64, f64) {
        let (x, y) = self.middle;
        (x + distance * angle.sin(), y - distance * angle.cos())
    }

    /// SVG path of an arc at a distance from the middle.
    pub(super) fn arc_path(&self, arc: &RingArc, distance: f64) -> String {
        let ((ax, ay), (bx, by)) = (
            self.point_at(arc.from, distance),
            self.point_at(arc.to, distance),
        );
        let large = u8::from(arc.to - arc.from > TAU / 2.0);
        format!("M{ax:.1} {ay:.1}A{distance:.1} {distance:.1} 0 {large} 1 {bx:.1} {by:.1}")
    }

    /// Control point of the chord between two points. It lies towards the middle, so that chords do
    /// not lie on each other.
    pub(super) fn bend(&self, a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
        let (x, y) = self.middle;
        let inward = |a: f64, b: f64, middle: f64| (a + b) / 2.0 * 0.45 + middle * 0.55;
        (inward(a.0, b.0, x), inward(a.1, b.1, y))
    }

    /// Radius of a switch in the middle.
    pub(super) fn hub(&self) -> f64 {
        (self.radius * 0.3).clamp(48.0, 90.0)
    }

    /// Arc behind neighbours. It goes `reach` steps beyond the first and the last of them.
    fn arc(&self, order: &[usize], part: &[usize], reach: f64) -> RingArc {
        let step = TAU / order.len().max(1) as f64;
        let nth = order
            .iter()
            .position(|at| *at == part[0])
            .unwrap_or_default() as f64;
        let last = nth + part.len() as f64 - 1.0;
        RingArc {
            from: (nth + 0.5 - reach) * step,
            to: (last + 0.5 + reach) * step,
        }
    }
}

// === impl RingArc ===

impl RingArc {
    /// Angle of the arc's middle.
    pub(super) fn middle(&self) -> f64 {
        (self.from + self.to) / 2.0
    }
}

/// Order of the cards around the ring: by NUMA node, then by PCIe switch, then as in the topology.
fn ring_order(topology: &CardTopology<'_>) -> Vec<usize> {
    let groups = groups(topology);
    let mut first: BTreeMap<Option<u32>, usize> = BTreeMap::new();
    for (at, entry) in topology.cards.iter().enumerate() {
        first.entry(entry.device.numa).or_insert(at);
    }
    let mut order: Vec<usize> = (0..topology.cards.len()).collect();
    order.sort_by_key(|at| (first[&topology.cards[*at].device.numa], groups[*at], *at));
    order
}

/// Group of each card: the first card behind the same PCIe switches.
fn groups(topology: &CardTopology<'_>) -> Vec<usize> {
    let near = |a: usize, b: usize| {
        let ancestor = topology.find_connection(a, b).ancestor;
        ancestor.is_some_and(|ancestor| ancestor <= Ancestor::Switches)
    };
    (0..topology.cards.len())
        .map(|at| (0..at).find(|other| near(*other, at)).unwrap_or(at))
        .collect()
}
