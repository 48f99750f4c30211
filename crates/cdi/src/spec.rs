//! Type of a CDI spec: the edits that a runtime makes in a container with one of its devices. Field
//! names are CDI's.

use std::collections::BTreeMap;

use rules::{ContainerEdits, KindEdits, NamedEdits};
use serde::{Deserialize, Serialize};

/// One spec file: the devices of one kind.
///
/// ```
/// use rules::{KindEdits, NamedEdits};
///
/// let device = |name: &str| NamedEdits { name: name.to_owned(), ..NamedEdits::default() };
/// let spec = cdi::CdiSpec::from(KindEdits {
///     kind: "example.com/gpu".to_owned(),
///     devices: vec![device("b"), device("a")],
///     ..KindEdits::default()
/// });
/// assert_eq!(spec.cdi_version, "0.3.0");
/// assert_eq!(spec.devices[0].name, "a");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CdiSpec {
    /// Version of CDI that the spec needs, for example `0.5.0`.
    pub cdi_version: String,
    /// Kind of the devices, `vendor/class`.
    pub kind: String,
    /// Annotations of the spec, for programs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Devices, sorted by name.
    pub devices: Vec<NamedEdits>,
    /// Edits that a container gets with any of the devices.
    #[serde(default, skip_serializing_if = "ContainerEdits::is_empty")]
    pub container_edits: ContainerEdits,
}

// === impl CdiSpec ===

impl CdiSpec {
    /// Class of the devices: the part of the kind after the `/`.
    pub fn kind_class(&self) -> &str {
        self.kind
            .split_once('/')
            .map_or("", |(_vendor, class)| class)
    }

    /// Qualified names of the devices, `vendor/class=device`.
    pub fn qualified_names(&self) -> impl Iterator<Item = String> {
        let devices = self.devices.iter();
        devices.map(|device| format!("{}={}", self.kind, device.name))
    }

    /// Finds a device by its name.
    pub fn find_device(&self, name: &str) -> Option<&NamedEdits> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// Makes the text of the spec file: JSON with a line break at the end.
    pub fn to_text(&self) -> String {
        // Serialization cannot fail: every key is a string, and there is no float.
        let text = serde_json::to_string_pretty(self).expect("a spec is plain data");
        text + "\n"
    }

    /// Lowest version of CDI that has every feature that the spec uses.
    pub fn minimum_version(&self) -> &'static str {
        // A runtime rejects a spec with a version that it does not know, so the lowest one works with the
        // most runtimes. The rules are those of CDI's specs-go/version.go, `MinimumRequiredVersion`.
        let devices = self.devices.iter().map(|device| &device.container_edits);
        let edits = || devices.clone().chain([&self.container_edits]);
        let first_is_letter =
            |device: &NamedEdits| device.name.starts_with(|c: char| c.is_ascii_alphabetic());
        let nodes = || edits().flat_map(|edits| &edits.device_nodes);
        let mut notes = self.devices.iter().map(|device| &device.annotations);
        let notes = !self.annotations.is_empty() || notes.any(|notes| !notes.is_empty());
        if edits().any(|edits| !edits.groups.is_empty()) {
            "0.7.0"
        } else if notes || self.kind_class().contains('.') {
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

impl From<KindEdits> for CdiSpec {
    /// Makes a spec in normal form, with the lowest version that has its features.
    fn from(edits: KindEdits) -> Self {
        let spec = Self {
            kind: edits.kind,
            devices: edits.devices,
            container_edits: edits.container_edits,
            ..Self::default()
        };
        spec.into_normal_form()
    }
}

impl From<CdiSpec> for KindEdits {
    fn from(spec: CdiSpec) -> Self {
        Self {
            kind: spec.kind,
            devices: spec.devices,
            container_edits: spec.container_edits,
        }
    }
}
