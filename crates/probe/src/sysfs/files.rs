//! The host's files that a driver of the kernel's answers for. A read may hang as a driver call
//! may, so each is written down in the same table.

use std::{
    fs::Metadata,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use model::CardRef;

use crate::Calls;

/// The most names that are read of a card's folder.
const MOST_NAMES: usize = 4096;

/// The most that are read of any other: `/dev` has many that are not looked for.
const MOST_IN_FOLDER: usize = 65_536;

/// The host's `/sys`, `/proc` and `/dev`.
#[derive(Clone, Debug)]
pub struct Files {
    root: PathBuf,
    /// A second place for what is below `/dev`.
    dev: Option<PathBuf>,
    calls: Arc<Calls>,
}

// === impl Files ===

impl Files {
    /// The files below `root`; what is done with them is written down in `calls`.
    pub fn new(root: impl Into<PathBuf>, calls: Arc<Calls>) -> Self {
        Self {
            root: root.into(),
            dev: None,
            calls,
        }
    }

    /// Looks for device nodes below `root` too.
    pub fn with_dev(mut self, root: Option<PathBuf>) -> Self {
        self.dev = root;
        self
    }

    /// The table of calls.
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// The folder that is the host's `/` for us.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A small text, trimmed; `None` where it is absent or unreadable.
    pub fn text(&self, path: &str, card: Option<CardRef>) -> Option<String> {
        let call = format!("read {path}");
        self.calls.watch(call, card, || {
            let bytes = fs_err::read(self.place(path)).ok()?;
            Some(String::from_utf8_lossy(&bytes).trim().to_owned())
        })
    }

    /// Tells if there is a file or a device node at `path`: a mount whose source was missing leaves a
    /// folder.
    pub fn has(&self, path: &str, card: Option<CardRef>) -> bool {
        let is_there = |place: PathBuf| fs_err::metadata(place).is_ok_and(|meta| !meta.is_dir());
        let call = format!("stat {path}");
        self.calls
            .watch(call, card, || self.places(path).into_iter().any(is_there))
    }

    /// Tells if there is a device node at `path`. In a tree that has plain files for nodes, as one for
    /// tests may, a plain file is one; there one of the `driver`'s own nodes is a plain file too.
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

    /// The last part of what a link points to.
    pub fn target(&self, path: &str, card: Option<CardRef>) -> Option<String> {
        let target = self.link(path, card)?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// The path that a link points to, as it is written.
    pub fn link(&self, path: &str, card: Option<CardRef>) -> Option<PathBuf> {
        let call = format!("readlink {path}");
        self.calls
            .watch(call, card, || fs_err::read_link(self.place(path)).ok())
    }

    /// The names in a folder; none where it is absent.
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

    /// The names in a folder of a card's.
    pub fn card_names(&self, path: &str, card: Option<CardRef>) -> Vec<String> {
        self.calls.watch(format!("list {path}"), card, || {
            let entries = fs_err::read_dir(self.place(path)).into_iter().flatten();
            let names = entries.flatten().take(MOST_NAMES);
            names
                .filter_map(|entry| entry.file_name().into_string().ok())
                .collect()
        })
    }

    /// Tells if a place for device nodes was named and can be seen: what is missing there is not there.
    pub fn sees_dev(&self) -> bool {
        let Some(dev) = &self.dev else { return false };
        self.watch(format!("stat {}", dev.display()), || dev.is_dir())
    }

    /// Tells if a device node is not in the place that was named for them, but the host has it.
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

    /// The file system's word on the device node at `path`, or of the first other thing that is
    /// found there.
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

    /// Does something else with the host's files that may hang.
    pub fn watch<T>(&self, call: String, work: impl FnOnce() -> T) -> T {
        self.calls.watch(call, None, work)
    }

    /// Every place where the host's absolute `path` may be for us. That for device nodes is first:
    /// who named it wants the nodes that are there.
    fn places(&self, path: &str) -> Vec<PathBuf> {
        let dev = self.dev.iter().filter(|_| path.starts_with("/dev/"));
        let roots = dev.chain([&self.root]);
        roots.map(|root| below(root, path)).collect()
    }

    /// Where the host's absolute `path` is for us.
    fn place(&self, path: &str) -> PathBuf {
        below(&self.root, path)
    }
}

/// Whether only the first of two things is a device node. A mount whose source was missing leaves a
/// file or a folder under the name of one.
fn is_better(one: &Metadata, other: &Metadata) -> bool {
    let is_node = |meta: &Metadata| meta.file_type().is_char_device();
    is_node(one) && !is_node(other)
}

/// Where an absolute path is below a folder.
fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}
