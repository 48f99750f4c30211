//! What a way between two cards is worth. The numbers are data: another vendor's are another
//! [`Table`], and the search does not change.

use model::Ancestor;

use crate::Way;

/// The worth of each thing that can join two cards; they are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The same board.
    pub board: u32,
    /// One PCIe switch.
    pub switch: u32,
    /// Several PCIe switches.
    pub switches: u32,
    /// One PCIe host bridge.
    pub host_bridge: u32,
    /// One NUMA node; also where only that is known.
    pub node: u32,
    /// Nothing closer than the machine; also where only different NUMA nodes are known.
    pub system: u32,
    /// Each direct lane, up to `most_lanes`.
    pub lane: u32,
    /// How many lanes count; cards on one fabric have so many.
    pub most_lanes: u32,
    /// The same NUMA node, beside all that.
    pub same_numa: u32,
}

// === impl Table ===

impl Table {
    /// NVIDIA's numbers, in which any NVLink is worth more than any way through the machine.
    pub const NVIDIA: Self = Self {
        board: 60,
        switch: 50,
        switches: 40,
        host_bridge: 30,
        node: 20,
        system: 10,
        lane: 100,
        most_lanes: 18,
        same_numa: 0,
    };

    /// The worth of a way. What is not known is worth nothing, and is never an obstacle.
    pub fn score(&self, way: &Way) -> u32 {
        let through = match (way.ancestor, way.same_numa) {
            (Some(Ancestor::Board), _) => self.board,
            (Some(Ancestor::Switch), _) => self.switch,
            (Some(Ancestor::Switches), _) => self.switches,
            (Some(Ancestor::HostBridge), _) => self.host_bridge,
            (Some(Ancestor::Node), _) | (None, Some(true)) => self.node,
            (Some(Ancestor::System), _) | (None, Some(false)) => self.system,
            (None, None) => 0,
        };
        let lanes = match way.fabric {
            true => self.most_lanes,
            false => way.lanes.min(self.most_lanes),
        };
        let numa = match way.same_numa {
            Some(true) => self.same_numa,
            _ => 0,
        };
        through + lanes * self.lane + numa
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::{Matrix, best};

    /// AMD's plugin adds up penalties, the least is best: 20 for another card, 10 (XGMI) or 40 (PCIe)
    /// or 50 (neither) for the link, 10 for the same NUMA node and 20 for another. A score is what is
    /// missing to the highest penalty, 90.
    const AMD: Table = Table {
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

    /// Eight cards in two hives of four, each hive on a NUMA node of its own.
    fn hives(a: usize, b: usize) -> Way {
        let same = a / 4 == b / 4;
        Way {
            ancestor: Some(Ancestor::System),
            lanes: u32::from(same),
            fabric: false,
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
        let matrix = Matrix::new(8, |a, b| AMD.score(&hives(a, b)));
        let set = best(&matrix, &[], size);
        let pairs = u64::try_from(size * (size - 1) / 2).unwrap();
        assert_eq!(90 * pairs - matrix.sum(&set), penalty);
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
        #[case] fabric: bool,
        #[case] same_numa: Option<bool>,
        #[case] score: u32,
    ) {
        let way = Way {
            ancestor,
            lanes,
            fabric,
            same_numa,
        };
        assert_eq!(Table::NVIDIA.score(&way), score);
    }
}
