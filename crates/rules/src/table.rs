//! The worth of what can join two cards, as data: another vendor's numbers are another [`Table`], and the
//! search does not change.

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
    /// The number of lanes that count; cards on one fabric have so many.
    pub most_lanes: u32,
    /// The same NUMA node, beside all that.
    pub same_numa: u32,
}

// === impl Table ===

impl Table {
    /// Numbers for devices whose vendor has none: any direct link is worth more than any way through the
    /// machine.
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
