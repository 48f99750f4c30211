//! Tells a file apart from one that came into its place.

use std::{fs::Metadata, os::unix::fs::MetadataExt as _, path::Path};

/// The identity of a file, and the version of its content by its modification time. Two equal ones
/// are of the same file, as far as the file system's clock can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    /// Zero for anything but a regular file: the size of a folder is the file system's affair.
    size: u64,
    modified: (i64, i64),
    /// Only with [`FileIdentity::of_inode`].
    changed: Option<(i64, i64)>,
}

// === impl FileIdentity ===

impl FileIdentity {
    /// The identity of the file that `path` leads to, links followed; `None` where there is none.
    /// A change of its mode, owner or label leaves it the same.
    pub fn of(path: &Path) -> Option<Self> {
        Some(Self::from_metadata(&fs_err::metadata(path).ok()?))
    }

    /// The identity of what is at `path` itself, be it a link; `None` where there is nothing.
    pub fn of_entry(path: &Path) -> Option<Self> {
        Some(Self::from_metadata(&fs_err::symlink_metadata(path).ok()?))
    }

    /// As [`FileIdentity::of`], and another one too after every change of the mode, the owner or
    /// the number of names: a file that could not be read may be readable then.
    pub fn of_inode(path: &Path) -> Option<Self> {
        let meta = fs_err::metadata(path).ok()?;
        Some(Self {
            changed: Some((meta.ctime(), meta.ctime_nsec())),
            ..Self::from_metadata(&meta)
        })
    }

    /// The identity of a file that was looked at.
    pub fn from_metadata(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: if meta.is_file() { meta.size() } else { 0 },
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: None,
        }
    }

    /// The time of the last modification, in seconds since 1970.
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
        assert_eq!(FileIdentity::of(&path), None);
        fs_err::write(&path, "x").unwrap();
        let first = FileIdentity::of(&path);
        assert_eq!(FileIdentity::of(&path), first);
        fs_err::copy(&path, &newer).unwrap();
        fs_err::rename(&newer, &path).unwrap();
        assert_ne!(FileIdentity::of(&path), first);
    }

    /// As far as a file system's coarse clock can be fooled.
    #[test]
    fn a_file_of_another_length_is_another_one_at_the_same_time() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (first, time) = (FileIdentity::of(file.path()), std::time::UNIX_EPOCH);
        file.as_file().set_modified(time).unwrap();
        let old = FileIdentity::of(file.path());
        assert_ne!(old, first);
        assert_eq!(old.unwrap().modified_secs(), 0);
        file.as_file().set_len(1).unwrap();
        file.as_file().set_modified(time).unwrap();
        assert_ne!(FileIdentity::of(file.path()), old);
    }

    #[test]
    fn a_new_mode_makes_another_inode_and_the_same_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let before = (
            FileIdentity::of(file.path()),
            FileIdentity::of_inode(file.path()),
        );
        // The clock of a file system may be as coarse as the kernel's tick.
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs_err::set_permissions(file.path(), PermissionsExt::from_mode(0o640)).unwrap();
        assert_eq!(FileIdentity::of(file.path()), before.0);
        assert_ne!(FileIdentity::of_inode(file.path()), before.1);
    }

    #[test]
    fn a_link_is_not_what_it_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs_err::write(&file, "x").unwrap();
        symlink(&file, &link).unwrap();
        assert_eq!(FileIdentity::of(&link), FileIdentity::of(&file));
        assert_ne!(FileIdentity::of_entry(&link), FileIdentity::of_entry(&file));
        fs_err::remove_file(&file).unwrap();
        assert_eq!(FileIdentity::of(&link), None);
        assert!(FileIdentity::of_entry(&link).is_some());
    }
}
