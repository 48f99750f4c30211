//! Device nodes, with what their file system says of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use model::NodeStat;

use crate::{ContainerEdits, DeviceNode, edits::under};

/// The bits by which everybody may read and write.
const WORLD: u32 = 0o006;

/// The facts by which device nodes become edits.
#[derive(Clone, Copy, Debug)]
pub struct Nodes<'a> {
    /// The folder on the host under which they are.
    pub root: &'a Path,
    /// Those that are not under it, but where their paths say.
    pub at_home: &'a BTreeSet<String>,
    /// What is known of them.
    pub stats: &'a BTreeMap<String, NodeStat>,
    /// Puts containers into the groups of nodes that not everybody may use.
    pub groups: bool,
}

// === impl Nodes ===

impl Nodes<'_> {
    /// The edits that give a container these nodes.
    pub fn edits(&self, paths: impl IntoIterator<Item = impl AsRef<str>>) -> ContainerEdits {
        let mut edits = ContainerEdits::default();
        for path in paths {
            let path = path.as_ref();
            let stat = self.stats.get(path);
            edits.groups.extend(self.group(stat));
            edits.device_nodes.push(self.node(path, stat));
        }
        edits
    }

    fn node(&self, path: &str, stat: Option<&NodeStat>) -> DeviceNode {
        let host_path = match self.at_home.contains(path) {
            true => path.to_owned(),
            false => under(self.root, path),
        };
        let plain = DeviceNode::at(host_path, path);
        let Some(stat) = stat else {
            return plain;
        };
        // Without a type a runtime looks at the node itself, and says so where it is gone.
        DeviceNode {
            major: Some(stat.major),
            minor: Some(stat.minor),
            file_mode: Some(stat.mode & 0o7777),
            permissions: Some("rwm".to_owned()),
            gid: (stat.gid != 0).then_some(stat.gid),
            ..plain
        }
    }

    fn group(&self, stat: Option<&NodeStat>) -> Option<u32> {
        let stat = stat.filter(|_| self.groups)?;
        (stat.gid != 0 && stat.mode & WORLD != WORLD).then_some(stat.gid)
    }
}
