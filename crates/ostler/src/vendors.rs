//! The vendors of this program, a line for each.

use rules::Vendors;

/// The rules of each vendor.
pub(crate) const VENDORS: Vendors = Vendors::new(&[&nvidia_rules::Nvidia]);
