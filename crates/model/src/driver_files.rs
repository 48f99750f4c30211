//! Files of a driver that a container needs. The probe finds them; CDI specs are made of them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PciAddress;

/// Files under the driver root. Every path is absolute, and without the driver root before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DriverFiles {
    /// Kind of machine that the files are for.
    #[serde(skip_serializing_if = "Platform::is_usual")]
    pub platform: Platform,
    /// Files to mount, sorted by path, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<DriverFile>,
    /// Device nodes by path, with their status in the file system.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<String, NodeStat>,
    /// Device nodes that a container needs on a Tegra board, whose card has none of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub board_nodes: Vec<String>,
    /// Nodes in `/dev/dri` of each card.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub drm: BTreeMap<PciAddress, Vec<String>>,
    /// Paths of programs that work as OCI hooks: `nvidia-cdi-hook`, `nvidia-ctk`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// Folders and files that could not be read, for a person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// Kind of machine, which decides where its driver's files are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Platform {
    /// Machine with a usual installation of the driver.
    #[default]
    Usual,
    /// WSL 2: Linux under Windows, with the driver in the Windows driver store.
    Wsl,
    /// Tegra board, whose CSV files list what containers need.
    Tegra,
}

/// One file of a driver.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct DriverFile {
    /// Path of the file. Never a symbolic link.
    pub path: String,
    /// Kind of the file.
    pub kind: FileKind,
    /// Path in a container; absent if it is `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_path: Option<String>,
    /// `DT_SONAME` of a library, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soname: Option<String>,
    /// Symbolic links to the file that exist on the host, e.g. one named as its soname; sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<FileLink>,
}

/// Symbolic link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct FileLink {
    /// Path of the link.
    pub path: String,
    /// Target, as the link contains it: absolute, or relative to the link's folder.
    pub target: String,
}

/// Kind of a driver's file.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// Shared library.
    Library,
    /// Program.
    Binary,
    /// Firmware that the driver loads.
    Firmware,
    /// Socket or folder of a daemon.
    Ipc,
    /// Settings and data: EGL, Vulkan, OpenCL, X11.
    Config,
    /// Part of GPUDirect Storage.
    Gds,
    /// Library that is not the driver's own and loads it: GLVND, the OpenCL loader.
    Companion,
}

/// Status of a device node in the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeStat {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Permission bits.
    pub mode: u32,
    /// User id of the owner.
    #[serde(default)]
    pub uid: u32,
    /// Group id of the owner.
    #[serde(default)]
    pub gid: u32,
}

// === impl Platform ===

impl Platform {
    /// Returns true for the usual platform, which is left out in JSON.
    pub fn is_usual(&self) -> bool {
        *self == Self::Usual
    }
}

/// Returns the path to which a link at `path` with this target leads, if no other link is on the
/// way.
pub fn resolve_link(path: &str, target: &str) -> String {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let begin = if target.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = Vec::new();
    for part in begin.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            // As in the kernel, `..` of the root is the root.
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_from_its_folder_or_from_the_top() {
        assert_eq!(resolve_link("/usr/lib/a.so", "a.so.1"), "/usr/lib/a.so.1");
        assert_eq!(
            resolve_link("/usr/lib/a.so", "./../b//a.so.1"),
            "/usr/b/a.so.1"
        );
        assert_eq!(resolve_link("/usr/lib/a.so", "/opt/a.so.1"), "/opt/a.so.1");
        assert_eq!(resolve_link("/a.so", "../../../b.so"), "/b.so");
    }
}
