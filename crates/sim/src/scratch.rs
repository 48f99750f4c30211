//! A place for nodes that do not last.

use std::{io, path::Path};

use rustix::fs::{StatVfsMountFlags, statvfs};
use tempfile::TempDir;

/// A folder in memory.
const MEMORY: &str = "/dev/shm";

/// A node takes a few MiB, and tests make many at a time.
const ROOM: u64 = 1 << 30;

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
