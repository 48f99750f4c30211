//! Reads of the host's files in `/sys`, `/proc` and `/dev`. A kernel driver answers such a read,
//! which may hang like a driver call, so each one is recorded in the same table.

use std::{
    fs::Metadata,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use model::CardRef;

use crate::CallTable;

/// Highest number of names that are read from a folder of a card.
const MOST_NAMES: usize = 4096;

/// Highest number of names that are read from any other folder. `/dev` has many unrelated ones.
const MOST_IN_FOLDER: usize = 65_536;

/// Access to the host's `/sys`, `/proc` and `/dev`, below a root folder.
#[derive(Clone, Debug)]
pub struct HostFiles {
    root: PathBuf,
    /// Root of another `/dev`, which is preferred.
    dev: Option<PathBuf>,
    calls: Arc<CallTable>,
}

// === impl HostFiles ===

impl HostFiles {
    /// Creates an access to the files below `root`. Every operation is recorded in `calls`.
    pub fn new(root: impl Into<PathBuf>, calls: Arc<CallTable>) -> Self {
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
    pub fn call_table(&self) -> &CallTable {
        &self.calls
    }

    /// Returns the folder that stands for the host's `/`.
    pub fn host_root(&self) -> &Path {
        &self.root
    }

    /// Reads a small text file, trimmed; `None` if the file is absent or unreadable.
    pub fn read_trimmed(&self, path: &str, card: Option<CardRef>) -> Option<String> {
        let call = format!("read {path}");
        self.calls.watch_operation(call, card, || {
            let bytes = fs_err::read(self.path_below_root(path)).ok()?;
            Some(String::from_utf8_lossy(&bytes).trim().to_owned())
        })
    }

    /// Returns true if `path` is a file or a device node. A folder does not count: a container
    /// runtime creates one for a bind mount whose source is missing.
    pub fn has_file(&self, path: &str, card: Option<CardRef>) -> bool {
        let is_there = |place: PathBuf| fs_err::metadata(place).is_ok_and(|meta| !meta.is_dir());
        let call = format!("stat {path}");
        self.calls.watch_operation(call, card, || {
            self.candidate_paths(path).into_iter().any(is_there)
        })
    }

    /// Returns true if `path` is a device node. In a tree for tests, plain files stand for device
    /// nodes; such a tree is recognised by a plain file at one of the `driver`'s own nodes.
    pub fn has_node(&self, path: &str, driver: &[&str]) -> bool {
        self.calls
            .watch_operation(format!("stat {path}"), None, || {
                let kinds = |path: &str| {
                    let places = self.candidate_paths(path).into_iter();
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
    pub fn link_target_name(&self, path: &str, card: Option<CardRef>) -> Option<String> {
        let target = self.link_target(path, card)?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// Returns a link's target as it is written, absolute or relative.
    pub fn link_target(&self, path: &str, card: Option<CardRef>) -> Option<PathBuf> {
        let call = format!("readlink {path}");
        self.calls.watch_operation(call, card, || {
            fs_err::read_link(self.path_below_root(path)).ok()
        })
    }

    /// Lists the names in a folder; empty if the folder is absent.
    pub fn list_names(&self, path: &str) -> Vec<String> {
        self.calls
            .watch_operation(format!("list {path}"), None, || {
                let places = self.candidate_paths(path);
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
        self.calls
            .watch_operation(format!("list {path}"), card, || {
                let entries = fs_err::read_dir(self.path_below_root(path))
                    .into_iter()
                    .flatten();
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
        self.watch_files(format!("stat {}", dev.display()), || dev.is_dir())
    }

    /// Returns true if the host has a device node that the configured other `/dev` lacks.
    pub fn is_stray(&self, path: &str) -> bool {
        let Some(dev) = &self.dev else { return false };
        self.calls
            .watch_operation(format!("stat {path}"), None, || {
                let meta = |place: PathBuf| fs_err::metadata(place).ok();
                match (meta(self.path_below_root(path)), meta(join_root(dev, path))) {
                    (None, _) => false,
                    (Some(_), None) => true,
                    (Some(own), Some(named)) => is_better(&own, &named),
                }
            })
    }

    /// Returns the metadata of the device node at `path`; if there is none, of any other file
    /// there.
    pub fn node_metadata(&self, path: &str) -> Option<Metadata> {
        self.calls
            .watch_operation(format!("stat {path}"), None, || {
                let places = self.candidate_paths(path).into_iter();
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
    pub fn watch_files<T>(&self, call: String, work: impl FnOnce() -> T) -> T {
        self.calls.watch_operation(call, None, work)
    }

    /// Lists the candidate paths for the host's absolute `path`. The configured other `/dev` comes
    /// first: the operator wants its device nodes.
    fn candidate_paths(&self, path: &str) -> Vec<PathBuf> {
        let dev = self.dev.iter().filter(|_| path.starts_with("/dev/"));
        let roots = dev.chain([&self.root]);
        roots.map(|root| join_root(root, path)).collect()
    }

    /// Returns the host's absolute `path` below the root folder.
    fn path_below_root(&self, path: &str) -> PathBuf {
        join_root(&self.root, path)
    }
}

/// Returns true if only the first of two files is a device node. A bind mount whose source is
/// missing may leave a file or a folder under the name of a device node.
fn is_better(one: &Metadata, other: &Metadata) -> bool {
    let is_node = |meta: &Metadata| meta.file_type().is_char_device();
    is_node(one) && !is_node(other)
}

/// Joins an absolute path to a root folder.
fn join_root(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}
