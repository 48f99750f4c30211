//! Identity of a file, which differs after the file was replaced.

use std::{fs::Metadata, os::unix::fs::MetadataExt as _, path::Path};

/// Identity of a file, with its size and modification time. Two equal identities mean the same file
/// with the same content, within the resolution of the file system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    // The size of a folder depends on the file system and on deleted entries.
    /// Size in bytes of a regular file; zero for everything else.
    size: u64,
    modified: (i64, i64),
    /// Time of the last inode change; set by [`FileIdentity::of_inode`] only.
    changed: Option<(i64, i64)>,
}

// === impl FileIdentity ===

impl FileIdentity {
    /// Identity of the file at `path`, links followed; `None` if there is none. A change of mode,
    /// owner or SELinux label does not change it.
    pub fn of_file(path: &Path) -> Option<Self> {
        Some(Self::from_metadata(&fs_err::metadata(path).ok()?))
    }

    /// Identity of the directory entry at `path`, links not followed; `None` if there is none.
    pub fn of_entry(path: &Path) -> Option<Self> {
        Some(Self::from_metadata(&fs_err::symlink_metadata(path).ok()?))
    }

    /// Like [`FileIdentity::of_file`], but a change of mode, owner or number of links changes the identity
    /// too. Use it where a file that was unreadable may have become readable.
    pub fn of_inode(path: &Path) -> Option<Self> {
        let meta = fs_err::metadata(path).ok()?;
        Some(Self {
            changed: Some((meta.ctime(), meta.ctime_nsec())),
            ..Self::from_metadata(&meta)
        })
    }

    /// Makes the identity from metadata that were read already.
    pub fn from_metadata(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: if meta.is_file() { meta.size() } else { 0 },
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: None,
        }
    }

    /// Time of the last modification, in seconds since 1970 (UTC).
    pub fn modified_secs(&self) -> i64 {
        self.modified.0
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_that_came_into_the_place_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, newer) = (folder.path().join("a"), folder.path().join("b"));
        assert_eq!(FileIdentity::of_file(&path), None);
        fs_err::write(&path, "x").unwrap();
        let first = FileIdentity::of_file(&path);
        assert_eq!(FileIdentity::of_file(&path), first);
        fs_err::copy(&path, &newer).unwrap();
        fs_err::rename(&newer, &path).unwrap();
        assert_ne!(FileIdentity::of_file(&path), first);
    }

    /// The size tells two files apart if the file system's clock is too coarse.
    #[test]
    fn a_file_of_another_length_is_another_one_at_the_same_time() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (first, time) = (FileIdentity::of_file(file.path()), std::time::UNIX_EPOCH);
        file.as_file().set_modified(time).unwrap();
        let old = FileIdentity::of_file(file.path());
        assert_ne!(old, first);
        assert_eq!(old.unwrap().modified_secs(), 0);
        file.as_file().set_len(1).unwrap();
        file.as_file().set_modified(time).unwrap();
        assert_ne!(FileIdentity::of_file(file.path()), old);
    }

    #[test]
    fn a_new_mode_makes_another_inode_and_the_same_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let before = (
            FileIdentity::of_file(file.path()),
            FileIdentity::of_inode(file.path()),
        );
        // The times of a file have the resolution of the kernel's tick, up to 10 ms (CONFIG_HZ=100).
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs_err::set_permissions(file.path(), PermissionsExt::from_mode(0o640)).unwrap();
        assert_eq!(FileIdentity::of_file(file.path()), before.0);
        assert_ne!(FileIdentity::of_inode(file.path()), before.1);
    }

    #[test]
    fn a_link_is_not_what_it_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs_err::write(&file, "x").unwrap();
        symlink(&file, &link).unwrap();
        assert_eq!(FileIdentity::of_file(&link), FileIdentity::of_file(&file));
        assert_ne!(FileIdentity::of_entry(&link), FileIdentity::of_entry(&file));
        fs_err::remove_file(&file).unwrap();
        assert_eq!(FileIdentity::of_file(&link), None);
        assert!(FileIdentity::of_entry(&link).is_some());
    }
}
