//! A CDI spec: what a runtime does to a container that is given a name of it. The fields are CDI's;
//! those that nothing here needs (network devices, Intel RDT) are left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::name::is_part;

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
    pub devices: Vec<Device>,
    /// What a container is given with any of the devices.
    #[serde(default, skip_serializing_if = "ContainerEdits::is_empty")]
    pub container_edits: ContainerEdits,
}

/// One device of a spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// Its name, unique in the kind.
    pub name: String,
    /// Notes for programs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// What a container is given with it.
    pub container_edits: ContainerEdits,
}

/// What is done to a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerEdits {
    /// Variables, as `NAME=value`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Device nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_nodes: Vec<DeviceNode>,
    /// Programs of the host that are run for the container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// Files and folders of the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Groups that the container's process is in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_gids: Vec<u32>,
}

/// A device node in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceNode {
    /// The path in the container.
    pub path: String,
    /// The path on the host, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_path: Option<String>,
    /// `c` for a character device.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The major number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major: Option<u32>,
    /// The minor number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<u32>,
    /// The permission bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_mode: Option<u32>,
    /// Some of `r`, `w`, `m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    /// The owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
}

/// A mount in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    /// The path on the host.
    pub host_path: String,
    /// The path in the container.
    pub container_path: String,
    /// The file system, where it is no bind mount.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// A program of the host that the runtime runs for a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// When: `createContainer`.
    pub hook_name: String,
    /// The program on the host.
    pub path: String,
    /// Its arguments, its own name first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Seconds it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
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
    pub fn device(&self, name: &str) -> Option<&Device> {
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
            |device: &Device| device.name.starts_with(|c: char| c.is_ascii_alphabetic());
        let nodes = || edits().flat_map(|edits| &edits.device_nodes);
        let mut notes = self.devices.iter().map(|device| &device.annotations);
        let notes = !self.annotations.is_empty() || notes.any(|notes| !notes.is_empty());
        if edits().any(|edits| !edits.additional_gids.is_empty()) {
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

// === impl ContainerEdits ===

impl ContainerEdits {
    /// Returns true if nothing is done.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the edits of `other`.
    pub fn add(&mut self, other: Self) {
        self.env.extend(other.env);
        self.device_nodes.extend(other.device_nodes);
        self.hooks.extend(other.hooks);
        self.mounts.extend(other.mounts);
        self.additional_gids.extend(other.additional_gids);
    }
}

/// Splits `vendor/class`, if both are what CDI allows.
pub fn split_kind(kind: &str) -> Option<(&str, &str)> {
    kind.split_once('/')
        .filter(|(vendor, class)| is_part(vendor) && is_part(class))
}
