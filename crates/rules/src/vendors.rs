//! List of the vendors that a program knows.

use std::fmt;

use crate::{Rules, vendor::Plain};

/// Vendors that a program knows, each once. The binary has one such list, with a line for each
/// vendor.
#[derive(Clone, Copy, Default)]
pub struct Vendors(&'static [&'static dyn Rules]);

// === impl Vendors ===

impl Vendors {
    /// Creates a list from the rules of each vendor.
    pub const fn new(rules: &'static [&'static dyn Rules]) -> Self {
        Self(rules)
    }

    /// Returns the rules for devices of a vendor; for an unknown one those of a plain device node.
    /// Searches a list of a few names.
    pub fn of(self, vendor: &str) -> &'static dyn Rules {
        let mut rules = self.0.iter();
        let known = rules.find(|rules| rules.vendor().name == vendor);
        known.map_or(&Plain, |rules| *rules)
    }

    /// Lists the rules of each known vendor.
    pub fn iter(self) -> impl Iterator<Item = &'static dyn Rules> {
        self.0.iter().copied()
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        self.iter().map(|rules| rules.vendor().name)
    }
}

impl fmt::Debug for Vendors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl PartialEq for Vendors {
    /// Compares the names: a program has one set of rules for each.
    fn eq(&self, other: &Self) -> bool {
        self.names().eq(other.names())
    }
}

impl Eq for Vendors {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendor_that_is_not_known_has_plain_device_nodes() {
        assert_eq!(Vendors::default().of("acme").vendor(), &crate::PLAIN);
        assert_eq!(format!("{:?}", Vendors::new(&[&Plain])), "[\"\"]");
    }
}
