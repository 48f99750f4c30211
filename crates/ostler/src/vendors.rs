//! The vendors that this program knows. A new vendor is one line here.

use rules::Vendors;

/// Rules of each vendor.
pub(crate) const VENDORS: Vendors = Vendors::new(&[&nvidia_rules::NvidiaRules]);
