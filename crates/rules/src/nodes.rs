//! Device nodes, with their numbers, permissions and owners.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use model::NodeStat;

use crate::{ContainerEdits, ContainerNode, edits::join_root};

/// Permission bits with which everybody may read and write.
const WORLD: u32 = 0o006;

/// Facts from which edits for device nodes are made.
#[derive(Clone, Copy, Debug)]
pub struct NodeFacts<'a> {
    /// Folder on the host with the device nodes.
    pub root: &'a Path,
    /// Nodes that are at their plain paths on the host, and not under `root`.
    pub at_home: &'a BTreeSet<String>,
    /// Status of each node, where the probe could read it.
    pub stats: &'a BTreeMap<String, NodeStat>,
    /// True to put containers into the groups of nodes that not everybody may use. CDI needs
    /// version 0.7.0 for it.
    pub groups: bool,
}

// === impl NodeFacts ===

impl NodeFacts<'_> {
    /// Returns the edits that give a container these nodes.
    pub fn make_node_edits(
        &self,
        paths: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> ContainerEdits {
        let mut edits = ContainerEdits::default();
        for path in paths {
            let path = path.as_ref();
            let stat = self.stats.get(path);
            edits.groups.extend(self.find_group(stat));
            edits.device_nodes.push(self.make_node(path, stat));
        }
        edits
    }

    fn make_node(&self, path: &str, stat: Option<&NodeStat>) -> ContainerNode {
        let host_path = match self.at_home.contains(path) {
            true => path.to_owned(),
            false => join_root(self.root, path),
        };
        // Without numbers and mode the runtime takes those of the node.
        let plain = ContainerNode::with_host_path(host_path, path);
        let Some(stat) = stat else {
            return plain;
        };
        // The type is left out on purpose: then the CDI library looks at the node when a container
        // starts, and fails with its path if it is gone (`pkg/cdi/container-edits_unix.go,
        // fillMissingInfo`).
        ContainerNode {
            major: Some(stat.major),
            minor: Some(stat.minor),
            // Without the bits of the file type. Access and group are as in specs of NVIDIA's
            // nvcdi.
            file_mode: Some(stat.mode & 0o7777),
            permissions: Some("rwm".to_owned()),
            gid: (stat.gid != 0).then_some(stat.gid),
            ..plain
        }
    }

    fn find_group(&self, stat: Option<&NodeStat>) -> Option<u32> {
        let stat = stat.filter(|_| self.groups)?;
        (stat.gid != 0 && stat.mode & WORLD != WORLD).then_some(stat.gid)
    }
}
