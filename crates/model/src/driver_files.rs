//! The files of a driver that a container needs, as the probe found them: facts for CDI specs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PciAddress;

/// What was found under the driver root. Every path is absolute and seen from inside that root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DriverFiles {
    /// The kind of machine that they are for.
    #[serde(skip_serializing_if = "Platform::is_usual")]
    pub platform: Platform,
    /// Files to mount, sorted by path, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<DriverFile>,
    /// The device nodes that were seen, with what their file system says of them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<String, NodeStat>,
    /// The device nodes that a container needs on a Tegra board, whose card has none of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub board_nodes: Vec<String>,
    /// The `/dev/dri` nodes of each card.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub drm: BTreeMap<PciAddress, Vec<String>>,
    /// Programs that can be run as OCI hooks: `nvidia-cdi-hook`, `nvidia-ctk`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// What could not be looked at, for a person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// A kind of machine, by where its driver's files are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Platform {
    /// One with the driver's usual installation.
    #[default]
    Usual,
    /// Linux below Windows, with the driver in Windows' driver store.
    Wsl,
    /// A Tegra board, whose system tells in files what containers need.
    Tegra,
}

/// One file of a driver.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct DriverFile {
    /// Where it is: a file, never a link.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
    /// Where a container wants it, where that is not `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_path: Option<String>,
    /// The name by which a loader knows a library, where the library says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soname: Option<String>,
    /// Links to it that exist on the host, e.g. by its soname; sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<FileLink>,
}

/// A symbolic link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct FileLink {
    /// Where the link is.
    pub path: String,
    /// What it says, as it is written there.
    pub target: String,
}

/// What a file of a driver is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A shared library.
    Library,
    /// A program.
    Binary,
    /// Firmware that the driver loads.
    Firmware,
    /// A socket or folder of a daemon.
    Ipc,
    /// Settings and data: EGL, Vulkan, OpenCL, X11.
    Config,
    /// A part of GPUDirect Storage.
    Gds,
    /// A library beside the driver's own that leads to it: GLVND's, OpenCL's loader.
    Companion,
}

/// What the file system says of a device node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeStat {
    /// The major number.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
    /// The permission bits.
    pub mode: u32,
    /// The owner.
    #[serde(default)]
    pub uid: u32,
    /// The group.
    #[serde(default)]
    pub gid: u32,
}

// === impl Platform ===

impl Platform {
    /// Whether nothing has to be said of it.
    pub fn is_usual(&self) -> bool {
        *self == Self::Usual
    }
}

/// Where a link at `path` leads that says `target`, with no other link on the way.
pub fn follow(path: &str, target: &str) -> String {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let begin = if target.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = Vec::new();
    for part in begin.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
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
        assert_eq!(follow("/usr/lib/a.so", "a.so.1"), "/usr/lib/a.so.1");
        assert_eq!(follow("/usr/lib/a.so", "./../b//a.so.1"), "/usr/b/a.so.1");
        assert_eq!(follow("/usr/lib/a.so", "/opt/a.so.1"), "/opt/a.so.1");
        assert_eq!(follow("/a.so", "../../../b.so"), "/b.so");
    }
}
