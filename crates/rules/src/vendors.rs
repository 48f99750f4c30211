//! List of the vendors that a program knows.

use std::fmt;

use crate::{Rules, vendor::PlainRules};

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
    pub fn find_rules(self, vendor: &str) -> &'static dyn Rules {
        let mut rules = self.0.iter();
        let known = rules.find(|rules| rules.vendor().name == vendor);
        known.map_or(&PlainRules, |rules| *rules)
    }

    /// Lists the rules of each known vendor.
    pub fn iter(self) -> impl Iterator<Item = &'static dyn Rules> {
        self.0.iter().copied()
    }

    fn list_vendor_names(self) -> impl Iterator<Item = &'static str> {
        self.iter().map(|rules| rules.vendor().name)
    }
}

impl fmt::Debug for Vendors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list_vendor_names()).finish()
    }
}

impl PartialEq for Vendors {
    /// Compares the names: a program has one set of rules for each.
    fn eq(&self, other: &Self) -> bool {
        self.list_vendor_names().eq(other.list_vendor_names())
    }
}

impl Eq for Vendors {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendor_that_is_not_known_has_plain_device_nodes() {
        assert_eq!(
            Vendors::default().find_rules("acme").vendor(),
            &crate::PLAIN
        );
        assert_eq!(format!("{:?}", Vendors::new(&[&PlainRules])), "[\"\"]");
    }
}
