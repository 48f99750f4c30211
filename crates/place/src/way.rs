//! Connection of two cards, merged from the links that each of the two reports.

use model::{Ancestor, Device, Link};
use rules::ScoreTable;
use serde::Serialize;

/// Connection of two cards. Where the two cards report different facts, the worse fact counts.
/// Where only one card reports a fact, that fact counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CardConnection {
    /// Closest common point on the way through the machine.
    pub ancestor: Option<Ancestor>,
    /// Number of direct lanes between the two.
    pub lanes: u32,
    /// True if both are on one switch, on which all pairs are equal.
    pub switched: bool,
    /// True if both are on one NUMA node; `None` unless both report their node.
    pub same_numa: Option<bool>,
}

// === impl CardConnection ===

impl CardConnection {
    /// Merges what two whole cards report about each other.
    pub fn between(a: &Device, b: &Device) -> Self {
        let numa = a.numa.zip(b.numa).map(|(a, b)| a == b);
        let there = a.links.iter().find(|link| link.peer == b.id);
        let back = b.links.iter().find(|link| link.peer == a.id);
        // Drivers answer for each direction on its own, and the two answers can differ. NVIDIA's
        // plugin panics when the number of link records differs (go-gpuallocator 0.6.0, best-effort
        // policy).
        let way = match (there, back) {
            (Some(there), Some(back)) => Self::worse(Self::from_link(there), Self::from_link(back)),
            (Some(one), None) | (None, Some(one)) => Self::from_link(one),
            (None, None) => Self::default(),
        };
        Self {
            same_numa: numa,
            ..way
        }
    }

    /// Returns the score of the connection by a vendor's table. An unknown fact scores 0: missing
    /// facts must never be a reason to refuse a request.
    pub fn score_by(&self, table: &ScoreTable) -> u32 {
        let through = match (self.ancestor, self.same_numa) {
            (Some(Ancestor::Board), _) => table.board,
            (Some(Ancestor::Switch), _) => table.switch,
            (Some(Ancestor::Switches), _) => table.switches,
            (Some(Ancestor::HostBridge), _) => table.host_bridge,
            (Some(Ancestor::Node), _) | (None, Some(true)) => table.node,
            (Some(Ancestor::System), _) | (None, Some(false)) => table.system,
            (None, None) => 0,
        };
        let lanes = if self.switched {
            table.most_lanes
        } else {
            self.lanes.min(table.most_lanes)
        };
        let numa = if self.same_numa == Some(true) {
            table.same_numa
        } else {
            0
        };
        through + lanes * table.lane + numa
    }

    fn from_link(link: &Link) -> Self {
        Self {
            ancestor: link.ancestor,
            lanes: link.lanes,
            switched: link.switched,
            same_numa: None,
        }
    }

    fn worse(a: Self, b: Self) -> Self {
        Self {
            ancestor: a.ancestor.max(b.ancestor),
            lanes: a.lanes.min(b.lanes),
            switched: a.switched && b.switched,
            same_numa: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use nvidia_rules::NVIDIA;
    use rstest::rstest;

    use super::*;
    use crate::{Matrix, find_best_set};

    /// Pair weights of AMD's device plugin as scores. The plugin adds up penalties, and the lowest
    /// sum wins: 20 for another card; 10 (XGMI), 40 (PCIe) or 50 (other) for the link; 10 for the
    /// same NUMA node and 20 for another. A score here is 90, the highest penalty, minus the
    /// penalty.
    const AMD: ScoreTable = ScoreTable {
        board: 10,
        switch: 10,
        switches: 10,
        host_bridge: 10,
        node: 10,
        system: 10,
        lane: 30,
        most_lanes: 1,
        same_numa: 10,
    };

    /// Connection of two of eight cards in two XGMI hives of four, each hive on its own NUMA node.
    fn hives(a: usize, b: usize) -> CardConnection {
        let same = a / 4 == b / 4;
        CardConnection {
            ancestor: Some(Ancestor::System),
            lanes: u32::from(same),
            switched: false,
            same_numa: Some(same),
        }
    }

    #[rstest]
    #[case(2, 40)]
    #[case(3, 120)]
    #[case(4, 240)]
    #[case(5, 560)]
    #[case(7, 1320)]
    fn another_vendors_numbers_are_another_table(#[case] size: usize, #[case] penalty: u64) {
        let matrix = Matrix::new(8, |a, b| hives(a, b).score_by(&AMD));
        let set = find_best_set(&matrix, &[], size);
        let pairs = u64::try_from(size * (size - 1) / 2).unwrap();
        assert_eq!(90 * pairs - matrix.sum_of_set(&set), penalty);
    }

    #[rstest]
    #[case(Some(Ancestor::Switch), 2, false, Some(true), 250)]
    #[case(Some(Ancestor::System), 40, false, None, 1810)]
    #[case(Some(Ancestor::Node), 0, true, Some(true), 1820)]
    #[case(None, 0, false, Some(true), 20)]
    #[case(None, 0, false, Some(false), 10)]
    #[case(None, 2, false, None, 200)]
    #[case(None, 0, false, None, 0)]
    fn a_way_is_worth_its_lanes_and_its_place(
        #[case] ancestor: Option<Ancestor>,
        #[case] lanes: u32,
        #[case] switched: bool,
        #[case] same_numa: Option<bool>,
        #[case] score: u32,
    ) {
        let way = CardConnection {
            ancestor,
            lanes,
            switched,
            same_numa,
        };
        assert_eq!(way.score_by(&NVIDIA.worth), score);
    }

    fn card(
        id: &str,
        numa: Option<u32>,
        link: Option<(&str, Option<Ancestor>, u32, bool)>,
    ) -> Device {
        let links = link.map(|(peer, ancestor, lanes, switched)| Link {
            peer: peer.into(),
            ancestor,
            lanes,
            switched,
        });
        Device {
            numa,
            links: links.into_iter().collect(),
            ..Device::card_of("nvidia", id, "A100")
        }
    }

    #[test]
    fn believes_the_worse_of_two_that_disagree() {
        let a = card("a", Some(0), Some(("b", Some(Ancestor::Switch), 4, true)));
        let b = card("b", Some(1), Some(("a", Some(Ancestor::Node), 2, false)));
        let expected = CardConnection {
            ancestor: Some(Ancestor::Node),
            lanes: 2,
            switched: false,
            same_numa: Some(false),
        };
        assert_eq!(CardConnection::between(&a, &b), expected);
        assert_eq!(CardConnection::between(&b, &a), expected);
    }

    #[test]
    fn believes_the_one_that_speaks() {
        let a = card("a", None, Some(("b", None, 0, true)));
        let b = card("b", Some(1), Some(("a", Some(Ancestor::System), 0, true)));
        let silent = card("b", Some(1), None);
        assert_eq!(
            CardConnection::between(&a, &b).ancestor,
            Some(Ancestor::System)
        );
        assert!(CardConnection::between(&a, &silent).switched);
        assert!(CardConnection::between(&silent, &a).switched);
        assert_eq!(CardConnection::between(&a, &silent).same_numa, None);
        assert_eq!(
            CardConnection::between(&card("a", None, None), &silent),
            CardConnection::default()
        );
    }
}
