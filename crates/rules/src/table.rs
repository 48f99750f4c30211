//! Scores of the connections between two cards, as data. Another vendor has another [`ScoreTable`], and
//! the search stays the same.

/// Scores of the connections between two cards. The score of a pair is the sum of those that apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreTable {
    /// Both on one board.
    pub board: u32,
    /// One PCIe switch between them.
    pub switch: u32,
    /// Several PCIe switches between them.
    pub switches: u32,
    /// One PCIe host bridge between them.
    pub host_bridge: u32,
    /// The same NUMA node, if that is all that is known.
    pub node: u32,
    /// Different NUMA nodes, or nothing closer than the machine.
    pub system: u32,
    /// Each direct lane, up to `most_lanes`.
    pub lane: u32,
    /// Highest number of lanes that count. Cards on one switch count as having so many.
    pub most_lanes: u32,
    /// Added for the same NUMA node.
    pub same_numa: u32,
}

// === impl ScoreTable ===

impl ScoreTable {
    /// Scores for devices of an unknown vendor: any direct link scores more than any way through
    /// the machine.
    pub const PLAIN: Self = Self {
        board: 6,
        switch: 5,
        switches: 4,
        host_bridge: 3,
        node: 2,
        system: 1,
        lane: 10,
        most_lanes: 8,
        same_numa: 0,
    };
}
