//! What a config says of XIDs, laid over the table.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Action, row};

/// The XIDs that NVIDIA's device plugin leaves out unless it is told otherwise.
const UPSTREAM_IGNORES: [u64; 6] = [13, 31, 43, 45, 68, 109];

/// What is done about each XID. `heed` beats `ignore`, which beats `overrides`, which beat `base`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XidPolicy {
    /// Where the actions come from.
    pub base: Base,
    /// Actions for single XIDs.
    pub overrides: BTreeMap<u64, Action>,
    /// XIDs that are left out.
    pub ignore: Numbers,
    /// XIDs that take a card out, whatever else is said of them.
    pub heed: Numbers,
    /// What is done about an XID that the table does not have.
    pub unknown: Action,
    /// For how long an XID that is a program's fault is shown as a warning.
    pub warn_for: Duration,
}

/// Where the actions come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// The table, which follows NVIDIA's catalogue.
    #[default]
    Catalogue,
    /// NVIDIA's device plugin: six XIDs are left out, every other one takes the card out.
    Upstream,
}

/// A set of XIDs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Every one.
    All,
    /// These.
    Some(BTreeSet<u64>),
}

// === impl XidPolicy ===

impl Default for XidPolicy {
    fn default() -> Self {
        Self {
            base: Base::Catalogue,
            overrides: BTreeMap::new(),
            ignore: Numbers::none(),
            heed: Numbers::none(),
            unknown: Action::Reset,
            warn_for: Duration::from_secs(5 * 60),
        }
    }
}

impl XidPolicy {
    /// What is done about an XID.
    pub fn action(&self, number: u64) -> Action {
        let overridden = self.overrides.get(&number).copied();
        if self.heed.has(number) {
            let known = overridden.or(row(number).map(|row| row.action));
            return known.filter(|a| a.takes_out()).unwrap_or(Action::Reset);
        }
        if self.ignore.has(number) {
            return Action::Ignore;
        }
        overridden.unwrap_or_else(|| self.base(number))
    }

    fn base(&self, number: u64) -> Action {
        let known = row(number).map(|row| row.action);
        match self.base {
            Base::Catalogue => known.unwrap_or(self.unknown),
            Base::Upstream if UPSTREAM_IGNORES.contains(&number) => Action::Ignore,
            Base::Upstream => known.filter(|a| a.takes_out()).unwrap_or(Action::Reset),
        }
    }
}

// === impl Numbers ===

impl Numbers {
    /// No XID.
    pub fn none() -> Self {
        Self::Some(BTreeSet::new())
    }

    /// Whether it has this XID.
    pub fn has(&self, number: u64) -> bool {
        match self {
            Self::All => true,
            Self::Some(numbers) => numbers.contains(&number),
        }
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self::none()
    }
}
