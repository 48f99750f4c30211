//! Edits to a container: environment, mounts, device nodes, hooks and groups. One type for every
//! front end and for CDI specs. Names and JSON are those of `containerEdits` in a CDI spec. Network
//! devices and Intel RDT are left out, because no vendor here needs them.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};

/// Changes to one container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerEdits {
    /// Environment variables by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", with = "env")]
    pub env: BTreeMap<String, String>,
    /// Device nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_nodes: Vec<ContainerNode>,
    /// Programs of the host that the runtime runs for the container. A CDI spec can name them; the
    /// kubelet's `ContainerAllocateResponse` cannot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// Files and folders of the host, in the order of mounting.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Groups that the container's process joins (CDI 0.7.0). A CDI spec can name them; the
    /// kubelet's `ContainerAllocateResponse` cannot.
    #[serde(rename = "additionalGids", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<u32>,
}

/// Device node in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerNode {
    /// Path in the container.
    pub path: String,
    /// Path on the host; absent if it is the same (CDI 0.5.0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_path: Option<String>,
    /// Type: `c` for a character device. Absent: the runtime reads it from the node.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Major number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major: Option<u32>,
    /// Minor number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<u32>,
    /// Permission bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_mode: Option<u32>,
    /// Access for the cgroup: some of `r`, `w` and `m` (mknod).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    /// User id of the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Group id of the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
}

/// Mount in a container. Writable unless `options` has `ro`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    /// Path on the host.
    pub host_path: String,
    /// Path in the container.
    pub container_path: String,
    /// File system type; absent for a bind mount.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Mount options, such as `ro` and `nosuid`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// Program of the host that the runtime runs for a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// OCI hook point, e.g. `createContainer`.
    pub hook_name: String,
    /// Path of the program on the host.
    pub path: String,
    /// Arguments, the program's name first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment of the program, as `NAME=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Time limit in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
}

// === impl ContainerEdits ===

impl ContainerEdits {
    /// Returns true if the edits change nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Sets a variable, and replaces an earlier value.
    pub fn set_variable(&mut self, variable: &str, value: impl Into<String>) {
        self.env.insert(variable.to_owned(), value.into());
    }

    /// Adds a writable bind mount.
    pub fn mount_writable(&mut self, host_path: impl Into<String>, container_path: String) {
        self.mounts.push(Mount {
            host_path: host_path.into(),
            container_path,
            ..Mount::default()
        });
    }

    /// Appends the edits of `other`. A variable that is set already keeps its value.
    pub fn append_edits(&mut self, other: Self) {
        for (name, value) in other.env {
            self.env.entry(name).or_insert(value);
        }
        self.device_nodes.extend(other.device_nodes);
        self.hooks.extend(other.hooks);
        self.mounts.extend(other.mounts);
        self.groups.extend(other.groups);
    }
}

// === impl ContainerNode ===

impl ContainerNode {
    /// Creates a node with the access `rw`, at its usual path in the container and under `root` on
    /// the host.
    pub fn new(root: &Path, path: &str) -> Self {
        Self {
            permissions: Some("rw".to_owned()),
            ..Self::with_host_path(join_root(root, path), path)
        }
    }

    /// Creates a node with its two paths only.
    pub(crate) fn with_host_path(host_path: String, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            host_path: (host_path != path).then_some(host_path),
            ..Self::default()
        }
    }

    /// Returns the path on the host.
    pub fn outside(&self) -> &str {
        self.host_path.as_deref().unwrap_or(&self.path)
    }
}

// === impl Mount ===

impl Mount {
    /// Returns true if a container cannot write to the mount.
    pub fn is_read_only(&self) -> bool {
        self.options.iter().any(|option| option == "ro")
    }
}

/// Returns an absolute path with `root` before it.
pub fn join_root(root: &Path, path: &str) -> String {
    // A root of `/` must not give `//dev`.
    let root = root.to_string_lossy();
    format!("{}{path}", root.trim_end_matches('/'))
}

/// Variables in CDI's form: a sorted list of `NAME=value`.
mod env {
    use std::collections::BTreeMap;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(
        env: &BTreeMap<String, String>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let list = env.iter().map(|(name, value)| format!("{name}={value}"));
        let mut list: Vec<String> = list.collect();
        // The names are sorted, but with the values behind them the order differs: `=` sorts after
        // digits.
        list.sort_unstable();
        list.serialize(serializer)
    }

    /// Reads a name without `=` as an empty value. The last value of a repeated name counts.
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
        let device = ContainerNode::new(Path::new(root), "/dev/nvidia0");
        assert_eq!(device.path, "/dev/nvidia0");
        assert_eq!(device.outside(), outside);
        assert_eq!(device.permissions.as_deref(), Some("rw"));
    }

    #[test]
    fn variables_are_a_sorted_list_in_json_and_come_back() {
        let mut edits = ContainerEdits::default();
        for (name, value) in [("A", "x=y"), ("A1", ""), ("B", "2")] {
            edits.set_variable(name, value);
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
        first.set_variable("A", "1");
        second.set_variable("A", "2");
        second.set_variable("B", "3");
        first.append_edits(second);
        assert_eq!((&*first.env["A"], &*first.env["B"]), ("1", "3"));
    }
}
