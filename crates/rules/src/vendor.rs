//! The trait that a vendor implements. Each method has a default that fits a plain device node.

use model::Device;

use crate::Table;

/// A vendor's name, its own words for things that every vendor has, and the worth of its links: data
/// without code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vendor {
    /// The name that devices carry, in lower case.
    pub name: &'static str,
    /// A direct link between two cards, for people.
    pub link: &'static str,
    /// The switch that joins all cards on it, for people.
    pub switch: &'static str,
    /// The letters before the number of links in a matrix of cards.
    pub link_mark: &'static str,
    /// The worth of each thing that can join two cards.
    pub worth: Table,
}

/// The rules of one vendor's devices.
///
/// Implemented once in each vendor's folder. A method without an implementation there does what fits a
/// device node without peculiarities.
pub trait Rules: Sync {
    /// The vendor's name and words.
    fn vendor(&self) -> &'static Vendor;

    /// The command that resets devices, all at once: a program and its arguments. `None` where the vendor
    /// has no tool for it, so that a pool with `preStart: reset` must name one.
    fn reset_command(&self, _devices: &[&Device]) -> Option<Vec<String>> {
        None
    }
}

/// The rules of devices whose vendor the product does not know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

/// The words for devices whose vendor the product does not know.
pub const PLAIN: Vendor = Vendor {
    name: "",
    link: "link",
    switch: "switch",
    link_mark: "L",
    worth: Table::PLAIN,
};

// === impl Plain ===

impl Rules for Plain {
    fn vendor(&self) -> &'static Vendor {
        &PLAIN
    }
}
