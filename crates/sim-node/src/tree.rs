//! Files of the host around the cards: `/sys`, `/proc`, `/dev` and a few more, below a root folder.
//!
//! The tree is derived from the state. New files are written before the state changes and old files
//! removed after, so a card that the driver lists always has its files.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::unix::fs::{FileTypeExt as _, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, FileType, Mode};

use crate::state::NodeState;

mod config;
mod dev;
mod draw;
mod driver;
mod platform;
mod proc;
mod sys;

/// Files that belong below the root: each path with its content.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HostTree {
    entries: BTreeMap<PathBuf, TreeEntry>,
}

#[derive(Debug, PartialEq, Eq)]
enum TreeEntry {
    File(Vec<u8>),
    Program(Vec<u8>),
    Link(PathBuf),
    Socket,
}

// === impl HostTree ===

impl HostTree {
    /// Files that belong to a state.
    pub fn from_state(state: &NodeState) -> Self {
        let mut tree = Self::default();
        sys::add_sys(&mut tree, state);
        proc::add_proc(&mut tree, state);
        dev::add_dev(&mut tree, state);
        platform::add_platform(&mut tree, state);
        tree
    }

    /// Files of the driver's installation alone. `library` is the driver library that the installed
    /// NVML loads by name.
    pub fn installation(state: &NodeState, library: &Path) -> Self {
        let mut tree = Self::default();
        driver::add_driver(&mut tree, state, library);
        tree
    }

    /// Adds the entries of `other`, which replace those at the same paths.
    pub fn with_entries(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self
    }

    /// Paths below the root, sorted.
    pub fn entry_paths(&self) -> impl Iterator<Item = &Path> {
        self.entries.keys().map(PathBuf::as_path)
    }

    fn add_file(&mut self, path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) {
        self.entries
            .insert(path.into(), TreeEntry::File(content.into()));
    }

    fn add_program(&mut self, path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) {
        let program = TreeEntry::Program(content.into());
        self.entries.insert(path.into(), program);
    }

    /// Adds a socket without a server.
    fn add_socket(&mut self, path: impl Into<PathBuf>) {
        self.entries.insert(path.into(), TreeEntry::Socket);
    }

    /// Adds a symlink with exactly this target.
    fn said_link(&mut self, path: impl Into<PathBuf>, target: &str) {
        self.entries
            .insert(path.into(), TreeEntry::Link(target.into()));
    }

    /// Adds a symlink to another path of the tree, relative as the kernel writes it.
    fn add_relative_link(&mut self, path: impl Into<PathBuf>, to: impl AsRef<Path>) {
        let path = path.into();
        let depth = path.components().count().saturating_sub(1);
        let target = std::iter::repeat_n("..", depth)
            .collect::<PathBuf>()
            .join(to);
        self.entries.insert(path, TreeEntry::Link(target));
    }

    /// Writes the files that are missing or differ. A file with the right content is not touched,
    /// since a driver may hold it open.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_tree(&self, root: &Path) -> io::Result<()> {
        let mut made = BTreeSet::new();
        for (path, entry) in &self.entries {
            let path = root.join(path);
            if let Some(parent) = path.parent()
                && made.insert(parent.to_owned())
            {
                fs_err::create_dir_all(parent)?;
            }
            entry.write_entry(&path)?;
        }
        Ok(())
    }

    /// Removes the files of the tree and no others; folders stay.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove_entries(&self, root: &Path) -> io::Result<()> {
        for path in self.entries.keys() {
            match fs_err::remove_file(root.join(path)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes all files that do not belong to the tree, and the folders that become empty.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn prune_others(&self, root: &Path) -> io::Result<()> {
        let mut folders = BTreeSet::new();
        for path in self.entries.keys() {
            folders.extend(path.ancestors().map(Path::to_owned));
        }
        self.sweep_folder(root, Path::new(""), &folders)
    }

    fn sweep_folder(&self, root: &Path, at: &Path, folders: &BTreeSet<PathBuf>) -> io::Result<()> {
        for entry in fs_err::read_dir(root.join(at))? {
            let entry = entry?;
            let path = at.join(entry.file_name());
            match entry.file_type()?.is_dir() {
                true if folders.contains(&path) => self.sweep_folder(root, &path, folders)?,
                true => fs_err::remove_dir_all(entry.path())?,
                false if self.entries.contains_key(&path) => {}
                false => fs_err::remove_file(entry.path())?,
            }
        }
        Ok(())
    }
}

// === impl TreeEntry ===

impl TreeEntry {
    /// Creates the entry at a path, unless it is there with the same content.
    fn write_entry(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::File(content) | Self::Program(content) => {
                if fs_err::read(path).ok().as_deref() != Some(content) {
                    fs_err::write(path, content)?;
                    if matches!(self, Self::Program(_)) {
                        fs_err::set_permissions(path, PermissionsExt::from_mode(0o755))?;
                    }
                }
            }
            Self::Link(target) => {
                if fs_err::read_link(path).ok().as_deref() != Some(target) {
                    let _ = fs_err::remove_file(path);
                    fs_err::os::unix::fs::symlink(target, path)?;
                }
            }
            Self::Socket => {
                let found = fs_err::symlink_metadata(path);
                if !found.is_ok_and(|meta| meta.file_type().is_socket()) {
                    let _ = fs_err::remove_file(path);
                    let mode = Mode::from_raw_mode(0o666);
                    rustix::fs::mknodat(CWD, path, FileType::Socket, mode, 0)?;
                }
            }
        }
        Ok(())
    }
}
