//! Temporary nodes.

use std::{
    io,
    ops::Deref,
    path::{Path, PathBuf},
};

use rustix::fs::{StatVfsMountFlags, statvfs};
use tempfile::TempDir;

use crate::{Error, Node, NodeProfile};

/// File system in memory that POSIX shared memory uses.
const MEMORY: &str = "/dev/shm";

/// Free memory that is required, in bytes. A node takes a few MiB, and tests create many at a time.
const ROOM: u64 = 1 << 30;

/// A node in a temporary folder, which is removed on drop. The folder has room beside the node for
/// a test's own files.
///
/// ```
/// let node = sim::ScratchNode::from_name("t4")?;
/// assert_eq!(node.list_gpus()?.len(), 1);
/// # Ok::<(), sim::Error>(())
/// ```
#[derive(Debug)]
pub struct ScratchNode {
    node: Node,
    folder: TempDir,
}

// === impl ScratchNode ===

impl ScratchNode {
    /// Creates a node from the built-in profile of this name.
    ///
    /// # Errors
    /// If there is no such profile, or a file cannot be written.
    pub fn from_name(profile: &str) -> Result<Self, Error> {
        Self::from_profile(&NodeProfile::find_profile(profile)?)
    }

    /// Creates a node from a profile.
    ///
    /// # Errors
    /// If the profile contradicts itself, or a file cannot be written.
    pub fn from_profile(profile: &NodeProfile) -> Result<Self, Error> {
        let folder = scratch()?;
        let node = Node::create_node(&folder.path().join("node"), profile)?;
        Ok(Self { node, folder })
    }

    /// Path of a file beside the node.
    pub fn file_beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Deref for ScratchNode {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

/// Creates a temporary folder for a node: in memory if there is room and the mount allows programs
/// to run, or else in the default folder for temporary files. `TMPDIR` overrides both.
///
/// A node consists of about a thousand small files. ext4 takes half a second to create them shortly
/// after as many were removed, because it skips each recently deleted inode (`recently_deleted` in
/// `fs/ext4/ialloc.c`).
///
/// # Errors
/// If the folder cannot be made.
pub fn scratch() -> io::Result<TempDir> {
    if std::env::var_os("TMPDIR").is_none() && is_roomy(Path::new(MEMORY)) {
        return tempfile::tempdir_in(MEMORY);
    }
    tempfile::tempdir()
}

fn is_roomy(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|disk| {
        !disk.f_flag.contains(StatVfsMountFlags::NOEXEC)
            && disk.f_bavail.saturating_mul(disk.f_frsize) >= ROOM
    })
}
