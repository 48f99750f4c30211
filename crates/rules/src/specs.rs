//! CDI specs: the request to a vendor, and the answer.

use std::collections::{BTreeMap, BTreeSet};

use config::{Backends, Handover};
use model::Snapshot;
use serde::{Deserialize, Serialize};

use crate::ContainerEdits;

/// Request for a vendor's specs.
#[derive(Clone, Copy, Debug)]
pub struct SpecRequest<'a> {
    /// Devices, and what the probes found beside them.
    pub snapshot: &'a Snapshot,
    /// Settings of each vendor.
    pub settings: &'a Backends,
    /// Devices and classes that the specs are to have.
    pub scope: SpecScope<'a>,
    /// Specs of the last answer. A device whose nodes vanished keeps its edits, so that its name
    /// can still be resolved when a container restarts.
    pub previous: &'a [KindEdits],
}

/// Devices and classes that specs are to have.
#[derive(Clone, Copy, Debug)]
pub enum SpecScope<'a> {
    /// Those that pools and containers need.
    Asked {
        /// Handovers of all pools.
        now: &'a [Handover],
        /// Handovers that applied until a moment ago. A container may just have been granted names
        /// of them.
        lately: &'a [Handover],
        /// Qualified names that containers were started with. The kubelet uses a grant again for
        /// each restart of a container, so that these names must stay.
        held: &'a BTreeSet<String>,
    },
    /// Everything there is, with the roots of this handover.
    Everything(&'a Handover),
    /// One device for containers that manage the node, with the roots of this handover.
    Management(&'a Handover),
}

/// Specs of a vendor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Specs {
    /// Specs, at most one for each kind.
    pub specs: Vec<KindEdits>,
    /// Notes on parts that containers will miss, and on files that could not be parsed.
    pub notes: Vec<String>,
}

/// Content of one CDI spec: the devices of a kind with their edits. The crate `cdi` adds order and
/// version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindEdits {
    /// Kind, as `vendor/class`.
    pub kind: String,
    /// Devices, in any order.
    pub devices: Vec<NamedEdits>,
    /// Edits for a container with any of the devices.
    pub container_edits: ContainerEdits,
}

/// One device of a CDI spec. Its JSON is CDI's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedEdits {
    /// Name, unique in the kind.
    pub name: String,
    /// Annotations, for other programs (CDI 0.6.0).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Edits for a container with the device.
    pub container_edits: ContainerEdits,
}

// === impl KindEdits ===

impl KindEdits {
    /// Returns the device with this name.
    pub fn find_named_edits(&self, name: &str) -> Option<&NamedEdits> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// Lists the qualified names of the devices, `vendor/class=name`.
    pub fn qualified_names(&self) -> impl Iterator<Item = String> {
        let devices = self.devices.iter();
        devices.map(|device| format!("{}={}", self.kind, device.name))
    }
}
