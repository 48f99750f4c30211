//! The edits to a container: environment, mounts, device nodes, annotations and CDI names.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::Path,
};

use config::{Handover, Sharing};
use model::{Device, Extras, ResourceName};
use serde::Serialize;

use crate::{Lists, cdi::under};

/// Devices of one vendor that a container is to be given.
#[derive(Clone, Copy, Debug)]
pub struct EditRequest<'a> {
    /// The resource that was asked for.
    pub resource: &'a ResourceName,
    /// The devices, in the order of the request, each once.
    pub devices: &'a [&'a Device],
    /// The sharing of the devices; its method is not `auto`.
    pub sharing: &'a Sharing,
    /// The parts that the pool hands over.
    pub handover: &'a Handover,
    /// The ways in which the container runtime is told.
    pub lists: &'a Lists,
    /// The things that the vendor's probe found beside the devices.
    pub extras: &'a Extras,
}

/// The parts that a container is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Edits {
    /// Environment variables.
    pub envs: BTreeMap<String, String>,
    /// Mounts, in the order in which they are to be made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountEdit>,
    /// Device nodes, sorted by path, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceEdit>,
    /// Annotations for the container runtime.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Fully qualified names of CDI devices, for the CRI.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cdi_devices: Vec<String>,
    /// Sentences on what the container is not given, or in another way than asked for.
    #[serde(skip)]
    pub notes: Vec<Note>,
}

/// A sentence on how devices are handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The sentence.
    pub text: String,
    /// True if containers miss something that the config asks for.
    pub problem: bool,
}

/// A mount in a container, to read and write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MountEdit {
    /// The path inside the container.
    pub container_path: String,
    /// The path on the host.
    pub host_path: String,
}

/// A device node in a container.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DeviceEdit {
    /// The path inside the container.
    pub container_path: String,
    /// The path on the host.
    pub host_path: String,
    /// Some of `r`, `w`, `m`.
    pub permissions: String,
}

// === impl EditRequest ===

impl EditRequest<'_> {
    /// The device nodes of the devices, as host paths.
    pub fn nodes(&self) -> impl Iterator<Item = String> {
        let nodes = self.devices.iter().flat_map(|device| &device.nodes);
        nodes.map(|node| node.path.clone())
    }
}

// === impl Edits ===

impl Edits {
    /// Sets a variable.
    pub fn set(&mut self, variable: &str, value: impl Into<String>) {
        self.envs.insert(variable.to_owned(), value.into());
    }

    /// Adds the edits of another vendor's devices. A variable that is set already stays, and a note says so.
    pub fn add(&mut self, other: Self) {
        for (name, value) in other.envs {
            match self.envs.entry(name) {
                Entry::Vacant(free) => {
                    free.insert(value);
                }
                Entry::Occupied(taken) => {
                    let name = taken.key();
                    let text = format!("{name} is set by two vendors; `{value}` is left out");
                    self.notes.push(Note::missing(text));
                }
            }
        }
        self.mounts.extend(other.mounts);
        self.devices.extend(other.devices);
        self.annotations.extend(other.annotations);
        self.cdi_devices.extend(other.cdi_devices);
        self.notes.extend(other.notes);
    }

    /// Adds a mount to read and write.
    pub fn mount(&mut self, host_path: impl Into<String>, container_path: String) {
        self.mounts.push(MountEdit {
            container_path,
            host_path: host_path.into(),
        });
    }
}

// === impl DeviceEdit ===

impl DeviceEdit {
    /// A node that the host has under `root`, to read and write, at its usual path.
    pub fn new(root: &Path, path: &str) -> Self {
        Self {
            container_path: path.to_owned(),
            host_path: under(root, path),
            permissions: "rw".to_owned(),
        }
    }
}

// === impl Note ===

impl Note {
    /// Something to know.
    pub fn info(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            problem: false,
        }
    }

    /// Something that containers miss.
    pub fn missing(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            problem: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("/", "/dev/nvidia0")]
    #[case("", "/dev/nvidia0")]
    #[case("/run/nvidia/driver", "/run/nvidia/driver/dev/nvidia0")]
    #[case("/run/nvidia/driver/", "/run/nvidia/driver/dev/nvidia0")]
    #[case("/run/nvidia/driver//", "/run/nvidia/driver/dev/nvidia0")]
    fn a_node_has_its_usual_path_inside_and_the_root_before_it_outside(
        #[case] root: &str,
        #[case] outside: &str,
    ) {
        let device = DeviceEdit::new(Path::new(root), "/dev/nvidia0");
        assert_eq!(device.container_path, "/dev/nvidia0");
        assert_eq!(device.host_path, outside);
        assert_eq!(device.permissions, "rw");
    }
}
