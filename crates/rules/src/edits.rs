//! The edits to a container: environment, mounts, device nodes, hooks and groups. One type for every way in
//! which devices are handed over. Its JSON is that of `containerEdits` in a CDI spec, whose words it uses;
//! what nothing here needs (network devices, Intel RDT) is left out.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};

/// The parts that a container is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerEdits {
    /// Environment variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", with = "env")]
    pub env: BTreeMap<String, String>,
    /// Device nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_nodes: Vec<DeviceNode>,
    /// Programs of the host that are run for the container. The kubelet cannot hand them over; a CDI spec can.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// Files and folders of the host, in the order in which they are to be mounted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Groups that the container's process is in. The kubelet cannot hand them over; a CDI spec can.
    #[serde(rename = "additionalGids", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<u32>,
}

/// A device node in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

/// A mount in a container: to read and write, unless its options say otherwise.
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
    /// The moment: `createContainer`.
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

// === impl ContainerEdits ===

impl ContainerEdits {
    /// Returns true if nothing is done.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Sets a variable.
    pub fn set(&mut self, variable: &str, value: impl Into<String>) {
        self.env.insert(variable.to_owned(), value.into());
    }

    /// Adds a mount to read and write.
    pub fn mount(&mut self, host_path: impl Into<String>, container_path: String) {
        self.mounts.push(Mount {
            host_path: host_path.into(),
            container_path,
            ..Mount::default()
        });
    }

    /// Adds the edits of `other`. A variable that is set already stays.
    pub fn add(&mut self, other: Self) {
        for (name, value) in other.env {
            self.env.entry(name).or_insert(value);
        }
        self.device_nodes.extend(other.device_nodes);
        self.hooks.extend(other.hooks);
        self.mounts.extend(other.mounts);
        self.groups.extend(other.groups);
    }
}

// === impl DeviceNode ===

impl DeviceNode {
    /// A node that the host has under `root`, to read and write, at its usual path.
    pub fn new(root: &Path, path: &str) -> Self {
        Self {
            permissions: Some("rw".to_owned()),
            ..Self::at(under(root, path), path)
        }
    }

    /// A node that the host has at `host_path`, and nothing more about it.
    pub(crate) fn at(host_path: String, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            host_path: (host_path != path).then_some(host_path),
            ..Self::default()
        }
    }

    /// The path on the host.
    pub fn outside(&self) -> &str {
        self.host_path.as_deref().unwrap_or(&self.path)
    }
}

// === impl Mount ===

impl Mount {
    /// Returns true if a container may not write to it.
    pub fn is_read_only(&self) -> bool {
        self.options.iter().any(|option| option == "ro")
    }
}

/// An absolute path as seen from outside of `root`.
pub fn under(root: &Path, path: &str) -> String {
    let root = root.to_string_lossy();
    format!("{}{path}", root.trim_end_matches('/'))
}

/// Variables as CDI writes them: a sorted list of `NAME=value`.
mod env {
    use std::collections::BTreeMap;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(
        env: &BTreeMap<String, String>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let list = env.iter().map(|(name, value)| format!("{name}={value}"));
        let mut list: Vec<String> = list.collect();
        list.sort_unstable();
        list.serialize(serializer)
    }

    /// A name without a value has an empty one. Of two values of a name the last one counts.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, String>, D::Error> {
        let list = Vec::<String>::deserialize(deserializer)?;
        let split = |text: &String| match text.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (text.clone(), String::new()),
        };
        Ok(list.iter().map(split).collect())
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
        let device = DeviceNode::new(Path::new(root), "/dev/nvidia0");
        assert_eq!(device.path, "/dev/nvidia0");
        assert_eq!(device.outside(), outside);
        assert_eq!(device.permissions.as_deref(), Some("rw"));
    }

    #[test]
    fn variables_are_a_sorted_list_in_json_and_come_back() {
        let mut edits = ContainerEdits::default();
        for (name, value) in [("A", "x=y"), ("A1", ""), ("B", "2")] {
            edits.set(name, value);
        }
        let text = serde_json::to_string(&edits).unwrap();
        assert_eq!(text, r#"{"env":["A1=","A=x=y","B=2"]}"#);
        let back: ContainerEdits = serde_json::from_str(&text).unwrap();
        assert_eq!(back, edits);
        let odd: ContainerEdits = serde_json::from_str(r#"{"env":["A","B=1","B=2"]}"#).unwrap();
        assert_eq!((&*odd.env["A"], &*odd.env["B"]), ("", "2"));
    }

    #[test]
    fn a_variable_that_is_set_stays_when_edits_are_added() {
        let (mut first, mut second) = (ContainerEdits::default(), ContainerEdits::default());
        first.set("A", "1");
        second.set("A", "2");
        second.set("B", "3");
        first.add(second);
        assert_eq!((&*first.env["A"], &*first.env["B"]), ("1", "3"));
    }
}
