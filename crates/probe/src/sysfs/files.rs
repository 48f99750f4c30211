//! Reads of the host's files in `/sys`, `/proc` and `/dev`. A kernel driver answers such a read,
//! which may hang like a driver call, so each one is recorded in the same table.

use std::{
    fs::Metadata,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use model::CardRef;

use crate::Calls;

/// Highest number of names that are read from a folder of a card.
const MOST_NAMES: usize = 4096;

/// Highest number of names that are read from any other folder. `/dev` has many unrelated ones.
const MOST_IN_FOLDER: usize = 65_536;

/// Access to the host's `/sys`, `/proc` and `/dev`, below a root folder.
#[derive(Clone, Debug)]
pub struct Files {
    root: PathBuf,
    /// Root of another `/dev`, which is preferred.
    dev: Option<PathBuf>,
    calls: Arc<Calls>,
}

// === impl Files ===

impl Files {
    /// Creates an access to the files below `root`. Every operation is recorded in `calls`.
    pub fn new(root: impl Into<PathBuf>, calls: Arc<Calls>) -> Self {
        Self {
            root: root.into(),
            dev: None,
            calls,
        }
    }

    /// Adds another folder whose `dev` is preferred for device nodes.
    pub fn with_dev(mut self, root: Option<PathBuf>) -> Self {
        self.dev = root;
        self
    }

    /// Returns the call table.
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Returns the folder that stands for the host's `/`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reads a small text file, trimmed; `None` if the file is absent or unreadable.
    pub fn text(&self, path: &str, card: Option<CardRef>) -> Option<String> {
        let call = format!("read {path}");
        self.calls.watch(call, card, || {
            let bytes = fs_err::read(self.place(path)).ok()?;
            Some(String::from_utf8_lossy(&bytes).trim().to_owned())
        })
    }

    /// Returns true if `path` is a file or a device node. A folder does not count: a container
    /// runtime creates one for a bind mount whose source is missing.
    pub fn has(&self, path: &str, card: Option<CardRef>) -> bool {
        let is_there = |place: PathBuf| fs_err::metadata(place).is_ok_and(|meta| !meta.is_dir());
        let call = format!("stat {path}");
        self.calls
            .watch(call, card, || self.places(path).into_iter().any(is_there))
    }

    /// Returns true if `path` is a device node. In a tree for tests, plain files stand for device
    /// nodes; such a tree is recognised by a plain file at one of the `driver`'s own nodes.
    pub fn has_node(&self, path: &str, driver: &[&str]) -> bool {
        self.calls.watch(format!("stat {path}"), None, || {
            let kinds = |path: &str| {
                let places = self.places(path).into_iter();
                places.filter_map(|place| Some(fs_err::metadata(place).ok()?.file_type()))
            };
            let plain = || {
                let mut driver = driver.iter();
                driver.any(|path| kinds(path).any(|kind| kind.is_file()))
            };
            kinds(path).any(|kind| kind.is_char_device() || (kind.is_file() && plain()))
        })
    }

    /// Returns the last component of a link's target.
    pub fn target(&self, path: &str, card: Option<CardRef>) -> Option<String> {
        let target = self.link(path, card)?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// Returns a link's target as it is written, absolute or relative.
    pub fn link(&self, path: &str, card: Option<CardRef>) -> Option<PathBuf> {
        let call = format!("readlink {path}");
        self.calls
            .watch(call, card, || fs_err::read_link(self.place(path)).ok())
    }

    /// Lists the names in a folder; empty if the folder is absent.
    pub fn names(&self, path: &str) -> Vec<String> {
        self.calls.watch(format!("list {path}"), None, || {
            let places = self.places(path);
            let folders = places
                .iter()
                .filter_map(|place| fs_err::read_dir(place).ok());
            folders
                .flat_map(|folder| folder.take(MOST_IN_FOLDER))
                .flatten()
                .filter_map(|entry| entry.file_name().into_string().ok())
                .collect()
        })
    }

    /// Lists the names in a folder of a card; empty if the folder is absent.
    pub fn card_names(&self, path: &str, card: Option<CardRef>) -> Vec<String> {
        self.calls.watch(format!("list {path}"), card, || {
            let entries = fs_err::read_dir(self.place(path)).into_iter().flatten();
            let names = entries.flatten().take(MOST_NAMES);
            names
                .filter_map(|entry| entry.file_name().into_string().ok())
                .collect()
        })
    }

    /// Returns true if another `/dev` was configured and exists. A device node that is missing
    /// there is then missing for containers.
    pub fn sees_dev(&self) -> bool {
        let Some(dev) = &self.dev else { return false };
        self.watch(format!("stat {}", dev.display()), || dev.is_dir())
    }

    /// Returns true if the host has a device node that the configured other `/dev` lacks.
    pub fn is_stray(&self, path: &str) -> bool {
        let Some(dev) = &self.dev else { return false };
        self.calls.watch(format!("stat {path}"), None, || {
            let meta = |place: PathBuf| fs_err::metadata(place).ok();
            match (meta(self.place(path)), meta(below(dev, path))) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(own), Some(named)) => is_better(&own, &named),
            }
        })
    }

    /// Returns the metadata of the device node at `path`; if there is none, of any other file
    /// there.
    pub fn metadata(&self, path: &str) -> Option<Metadata> {
        self.calls.watch(format!("stat {path}"), None, || {
            let places = self.places(path).into_iter();
            let found = places.filter_map(|place| fs_err::metadata(place).ok());
            found.reduce(|first, next| {
                if is_better(&next, &first) {
                    next
                } else {
                    first
                }
            })
        })
    }

    /// Runs another operation on the host's files that may hang, recorded under the name `call`.
    pub fn watch<T>(&self, call: String, work: impl FnOnce() -> T) -> T {
        self.calls.watch(call, None, work)
    }

    /// Lists the candidate paths for the host's absolute `path`. The configured other `/dev` comes
    /// first: the operator wants its device nodes.
    fn places(&self, path: &str) -> Vec<PathBuf> {
        let dev = self.dev.iter().filter(|_| path.starts_with("/dev/"));
        let roots = dev.chain([&self.root]);
        roots.map(|root| below(root, path)).collect()
    }

    /// Returns the host's absolute `path` below the root folder.
    fn place(&self, path: &str) -> PathBuf {
        below(&self.root, path)
    }
}

/// Returns true if only the first of two files is a device node. A bind mount whose source is
/// missing may leave a file or a folder under the name of a device node.
fn is_better(one: &Metadata, other: &Metadata) -> bool {
    let is_node = |meta: &Metadata| meta.file_type().is_char_device();
    is_node(one) && !is_node(other)
}

/// Joins an absolute path to a root folder.
fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}
