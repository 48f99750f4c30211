//! The edits to a container: environment, mounts, device nodes, annotations and CDI names.

use std::{collections::BTreeMap, path::Path};

use serde::Serialize;

/// What a container is given.
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

// === impl Edits ===

impl Edits {
    pub(crate) fn set(&mut self, variable: &str, value: impl Into<String>) {
        self.envs.insert(variable.to_owned(), value.into());
    }

    pub(crate) fn mount(&mut self, host_path: impl Into<String>, container_path: String) {
        self.mounts.push(MountEdit {
            container_path,
            host_path: host_path.into(),
        });
    }
}

// === impl DeviceEdit ===

impl DeviceEdit {
    /// A node that the host has under `root`, to read and write, at its usual path.
    pub(crate) fn new(root: &Path, path: &str) -> Self {
        Self {
            container_path: path.to_owned(),
            host_path: under(root, path),
            permissions: "rw".to_owned(),
        }
    }
}

/// An absolute path as seen from outside of `root`.
pub(crate) fn under(root: &Path, path: &str) -> String {
    let root = root.to_string_lossy();
    format!("{}{path}", root.trim_end_matches('/'))
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
