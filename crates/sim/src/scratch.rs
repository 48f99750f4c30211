//! Nodes that do not last.

use std::{
    io,
    ops::Deref,
    path::{Path, PathBuf},
};

use rustix::fs::{StatVfsMountFlags, statvfs};
use tempfile::TempDir;

use crate::{Error, Node, Profile};

/// A folder in memory.
const MEMORY: &str = "/dev/shm";

/// A node takes a few MiB, and tests make many at a time.
const ROOM: u64 = 1 << 30;

/// A node in a temporary folder that goes with it, and room beside the node for a test's own files.
///
/// ```
/// let node = sim::Scratch::named("t4")?;
/// assert_eq!(node.gpus()?.len(), 1);
/// # Ok::<(), sim::Error>(())
/// ```
#[derive(Debug)]
pub struct Scratch {
    node: Node,
    folder: TempDir,
}

// === impl Scratch ===

impl Scratch {
    /// A node of the profile with this name.
    ///
    /// # Errors
    /// If there is no such profile, or a file cannot be written.
    pub fn named(profile: &str) -> Result<Self, Error> {
        Self::of(&Profile::named(profile)?)
    }

    /// A node of this profile.
    ///
    /// # Errors
    /// If the profile contradicts itself, or a file cannot be written.
    pub fn of(profile: &Profile) -> Result<Self, Error> {
        let folder = scratch()?;
        let node = Node::create(&folder.path().join("node"), profile)?;
        Ok(Self { node, folder })
    }

    /// The path of a file beside the node.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Deref for Scratch {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

/// Makes a temporary folder for a node: in memory where there is room for it and programs may be run
/// from there, else where temporary files are. `TMPDIR` says otherwise.
///
/// A node is a thousand small files. ext4 takes half a second to make them when as many were removed
/// a moment ago: it passes over each inode that was (`recently_deleted` in `fs/ext4/ialloc.c`).
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
