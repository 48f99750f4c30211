//! The rules of NVIDIA's devices: its words, and the worth of its links.

use rules::{Rules, Table, Vendor, Vendors};

/// NVIDIA's rules.
#[derive(Clone, Copy, Debug)]
pub struct Nvidia;

/// NVIDIA's name and words.
pub const NVIDIA: Vendor = Vendor {
    name: "nvidia",
    link: "NVLink",
    switch: "NVSwitch",
    link_mark: "NV",
    worth: WORTH,
};

/// A list with NVIDIA alone, for tests and tools.
pub const VENDORS: Vendors = Vendors::new(&[&Nvidia]);

/// The numbers of NVIDIA's go-gpuallocator, in which any NVLink is worth more than any way through the
/// machine.
const WORTH: Table = Table {
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

// === impl Nvidia ===

impl Rules for Nvidia {
    fn vendor(&self) -> &'static Vendor {
        &NVIDIA
    }
}
