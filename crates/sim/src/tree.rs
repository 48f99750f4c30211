//! The host's files around the cards: `/sys`, `/proc`, `/dev` and a few more below a root folder.
//!
//! The tree is made from the state. What should be there is written before the state changes and
//! what should not is removed after, so that a card the driver shows always has its files.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use crate::state::State;

mod config;
mod dev;
mod platform;
mod proc;
mod sys;

/// What should be below the root: each path with its content.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    entries: BTreeMap<PathBuf, Entry>,
}

#[derive(Debug, PartialEq, Eq)]
enum Entry {
    File(Vec<u8>),
    Link(PathBuf),
}

// === impl Tree ===

impl Tree {
    /// The files that belong to a state.
    pub(crate) fn of(state: &State) -> Self {
        let mut tree = Self::default();
        sys::add(&mut tree, state);
        proc::add(&mut tree, state);
        dev::add(&mut tree, state);
        platform::add(&mut tree, state);
        tree
    }

    fn file(&mut self, path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) {
        self.entries
            .insert(path.into(), Entry::File(content.into()));
    }

    /// A symlink to another path of the tree, written relative as the kernel does.
    fn link(&mut self, path: impl Into<PathBuf>, to: impl AsRef<Path>) {
        let path = path.into();
        let depth = path.components().count().saturating_sub(1);
        let target = std::iter::repeat_n("..", depth)
            .collect::<PathBuf>()
            .join(to);
        self.entries.insert(path, Entry::Link(target));
    }

    /// Writes what is missing or different. A file whose content is right is left alone: a driver
    /// may hold it open.
    pub(crate) fn write(&self, root: &Path) -> io::Result<()> {
        for (path, entry) in &self.entries {
            let path = root.join(path);
            if let Some(parent) = path.parent() {
                fs_err::create_dir_all(parent)?;
            }
            match entry {
                Entry::File(content) => {
                    if fs_err::read(&path).ok().as_deref() != Some(content) {
                        fs_err::write(&path, content)?;
                    }
                }
                Entry::Link(target) => {
                    if fs_err::read_link(&path).ok().as_deref() != Some(target) {
                        let _ = fs_err::remove_file(&path);
                        fs_err::os::unix::fs::symlink(target, &path)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes what does not belong to the tree, and folders that are empty then.
    pub(crate) fn prune(&self, root: &Path) -> io::Result<()> {
        let mut folders = BTreeSet::new();
        for path in self.entries.keys() {
            folders.extend(path.ancestors().map(Path::to_owned));
        }
        self.sweep(root, Path::new(""), &folders)
    }

    fn sweep(&self, root: &Path, at: &Path, folders: &BTreeSet<PathBuf>) -> io::Result<()> {
        for entry in fs_err::read_dir(root.join(at))? {
            let entry = entry?;
            let path = at.join(entry.file_name());
            match entry.file_type()?.is_dir() {
                true if folders.contains(&path) => self.sweep(root, &path, folders)?,
                true => fs_err::remove_dir_all(entry.path())?,
                false if self.entries.contains_key(&path) => {}
                false => fs_err::remove_file(entry.path())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
