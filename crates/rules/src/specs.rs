//! CDI specs that a vendor is asked for, and those that it made.

use std::collections::{BTreeMap, BTreeSet};

use config::{Backends, Handover};
use model::Snapshot;
use serde::{Deserialize, Serialize};

use crate::ContainerEdits;

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
    pub previous: &'a [KindEdits],
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
    pub specs: Vec<KindEdits>,
    /// Sentences on what containers will miss, and on what was not understood.
    pub notes: Vec<String>,
}

/// Contents of one CDI spec: the devices of a kind, and the edits of each. Order and version are made of them
/// by who writes the spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindEdits {
    /// `vendor/class`.
    pub kind: String,
    /// The devices, in any order.
    pub devices: Vec<NamedEdits>,
    /// The edits that a container is given with any of the devices.
    pub container_edits: ContainerEdits,
}

/// One device of a CDI spec. Its JSON is CDI's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedEdits {
    /// Its name, unique in the kind.
    pub name: String,
    /// Notes for programs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The edits that a container is given with it.
    pub container_edits: ContainerEdits,
}

// === impl KindEdits ===

impl KindEdits {
    /// The device of that name.
    pub fn device(&self, name: &str) -> Option<&NamedEdits> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// The qualified names of the devices.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let devices = self.devices.iter();
        devices.map(|device| format!("{}={}", self.kind, device.name))
    }
}
