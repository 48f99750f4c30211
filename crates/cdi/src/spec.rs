//! A CDI spec: what a runtime does to a container that is given a name of it. The fields are CDI's.

use std::collections::BTreeMap;

use rules::{ContainerEdits, KindEdits, NamedEdits};
use serde::{Deserialize, Serialize};

/// One spec file: the devices of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The version of CDI that the spec needs.
    pub cdi_version: String,
    /// `vendor/class`.
    pub kind: String,
    /// Notes for programs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The devices, sorted by name.
    pub devices: Vec<NamedEdits>,
    /// Edits that a container is given with any of the devices.
    #[serde(default, skip_serializing_if = "ContainerEdits::is_empty")]
    pub container_edits: ContainerEdits,
}

// === impl Spec ===

impl Spec {
    /// The class: what is after the `/` of the kind.
    pub fn class(&self) -> &str {
        self.kind
            .split_once('/')
            .map_or("", |(_vendor, class)| class)
    }

    /// The qualified names of the devices.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let devices = self.devices.iter();
        devices.map(|device| format!("{}={}", self.kind, device.name))
    }

    /// The device of that name.
    pub fn device(&self, name: &str) -> Option<&NamedEdits> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// The text of its file.
    pub fn to_text(&self) -> String {
        // Every key is a text and every value is finite.
        let text = serde_json::to_string_pretty(self).expect("a spec is plain data");
        text + "\n"
    }

    /// The lowest version of CDI that has all that the spec uses.
    pub fn version(&self) -> &'static str {
        let devices = self.devices.iter().map(|device| &device.container_edits);
        let edits = || devices.clone().chain([&self.container_edits]);
        let first_is_letter =
            |device: &NamedEdits| device.name.starts_with(|c: char| c.is_ascii_alphabetic());
        let nodes = || edits().flat_map(|edits| &edits.device_nodes);
        let mut notes = self.devices.iter().map(|device| &device.annotations);
        let notes = !self.annotations.is_empty() || notes.any(|notes| !notes.is_empty());
        if edits().any(|edits| !edits.groups.is_empty()) {
            "0.7.0"
        } else if notes || self.class().contains('.') {
            "0.6.0"
        } else if !self.devices.iter().all(first_is_letter)
            || nodes().any(|node| node.host_path.is_some())
        {
            "0.5.0"
        } else if edits().any(|edits| edits.mounts.iter().any(|mount| mount.kind.is_some())) {
            "0.4.0"
        } else {
            "0.3.0"
        }
    }
}

impl From<KindEdits> for Spec {
    /// The spec in its order, with the lowest version that it can have.
    fn from(edits: KindEdits) -> Self {
        let spec = Self {
            kind: edits.kind,
            devices: edits.devices,
            container_edits: edits.container_edits,
            ..Self::default()
        };
        spec.tidy()
    }
}

impl From<Spec> for KindEdits {
    fn from(spec: Spec) -> Self {
        Self {
            kind: spec.kind,
            devices: spec.devices,
            container_edits: spec.container_edits,
        }
    }
}
