//! CDI specs that a vendor is asked for, and those that it made.

use std::collections::BTreeSet;

use config::{Backends, Handover};
use model::Snapshot;

use crate::cdi::Spec;

/// Specs that a vendor is asked for.
#[derive(Clone, Copy, Debug)]
pub struct SpecRequest<'a> {
    /// The devices, and what the probes found beside them.
    pub snapshot: &'a Snapshot,
    /// The settings of each vendor.
    pub settings: &'a Backends,
    /// The devices and classes that specs are to have.
    pub scope: SpecScope<'a>,
    /// The specs that were made last: a device whose nodes vanished keeps its edits, so that its name stays
    /// a name.
    pub previous: &'a [Spec],
}

/// The devices and classes that specs are to have.
#[derive(Clone, Copy, Debug)]
pub enum SpecScope<'a> {
    /// The needs of pools and containers.
    Asked {
        /// The handovers of all pools.
        now: &'a [Handover],
        /// Those that counted until a moment ago: a container may just have been given names of them.
        lately: &'a [Handover],
        /// The qualified names that containers were started with.
        held: &'a BTreeSet<String>,
    },
    /// All that there is, with the roots of this handover.
    Everything(&'a Handover),
    /// One device for containers that look after the node, with the roots of this handover.
    Management(&'a Handover),
}

/// Specs that a vendor made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Specs {
    /// At most one spec for each kind.
    pub specs: Vec<Spec>,
    /// Sentences on what containers will miss, and on what was not understood.
    pub notes: Vec<String>,
}
