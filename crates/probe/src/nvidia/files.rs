//! The host's files that a driver of the kernel's answers for. A read may hang as a driver call
//! may, so each is written down in the same table.

use std::{
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use nvml::{Calls, Locator};

/// The node that every driver has.
const DRIVER: &str = "/dev/nvidiactl";

/// The most names that are read of a card's folder.
const MOST_NAMES: usize = 4096;

/// The host's `/sys`, `/proc` and `/dev`.
#[derive(Clone, Debug)]
pub(super) struct Files {
    root: PathBuf,
    /// A second place for what is below `/dev`.
    dev: Option<PathBuf>,
    calls: Arc<Calls>,
}

// === impl Files ===

impl Files {
    /// The files below `root`; what is done with them is written down in `calls`.
    pub(super) fn new(root: impl Into<PathBuf>, calls: Arc<Calls>) -> Self {
        Self {
            root: root.into(),
            dev: None,
            calls,
        }
    }

    /// Looks for device nodes below `root` too.
    pub(super) fn with_dev(mut self, root: Option<PathBuf>) -> Self {
        self.dev = root;
        self
    }

    /// The table of calls.
    pub(super) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Where the host's `/` is for us.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// A small text, trimmed; `None` where it is absent or unreadable.
    pub(super) fn text(&self, path: &str, card: Option<Locator>) -> Option<String> {
        let call = format!("read {path}");
        self.calls.watch(call, card, || {
            let bytes = fs_err::read(self.place(path)).ok()?;
            Some(String::from_utf8_lossy(&bytes).trim().to_owned())
        })
    }

    /// Whether there is something at `path`.
    pub(super) fn has(&self, path: &str, card: Option<Locator>) -> bool {
        let call = format!("stat {path}");
        self.calls.watch(call, card, || {
            self.places(path).iter().any(|place| place.exists())
        })
    }

    /// Whether there is a device node at `path`. In a tree that has plain files for nodes, as one for
    /// tests may, a plain file is one.
    pub(super) fn has_node(&self, path: &str) -> bool {
        self.calls.watch(format!("stat {path}"), None, || {
            let kinds = |path: &str| {
                let places = self.places(path).into_iter();
                places.filter_map(|place| Some(fs_err::metadata(place).ok()?.file_type()))
            };
            let plain = || kinds(DRIVER).any(|kind| kind.is_file());
            kinds(path).any(|kind| kind.is_char_device() || (kind.is_file() && plain()))
        })
    }

    /// The last part of what a link points to.
    pub(super) fn target(&self, path: &str, card: Option<Locator>) -> Option<String> {
        let target = self.link(path, card)?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// What a link points to, as it is written.
    pub(super) fn link(&self, path: &str, card: Option<Locator>) -> Option<PathBuf> {
        let call = format!("readlink {path}");
        self.calls
            .watch(call, card, || fs_err::read_link(self.place(path)).ok())
    }

    /// The names in a folder; none where it is absent.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        self.calls.watch(format!("list {path}"), None, || {
            let places = self.places(path);
            let folders = places
                .iter()
                .filter_map(|place| fs_err::read_dir(place).ok());
            folders
                .flatten()
                .flatten()
                .filter_map(|entry| entry.file_name().into_string().ok())
                .collect()
        })
    }

    /// The names in a folder of a card's.
    pub(super) fn card_names(&self, path: &str, card: Option<Locator>) -> Vec<String> {
        self.calls.watch(format!("list {path}"), card, || {
            let entries = fs_err::read_dir(self.place(path)).into_iter().flatten();
            let names = entries.flatten().take(MOST_NAMES);
            names
                .filter_map(|entry| entry.file_name().into_string().ok())
                .collect()
        })
    }

    /// What the file system says of the first thing that is found at `path`.
    pub(super) fn metadata(&self, path: &str) -> Option<std::fs::Metadata> {
        self.calls.watch(format!("stat {path}"), None, || {
            let mut places = self.places(path).into_iter();
            places.find_map(|place| fs_err::metadata(place).ok())
        })
    }

    /// Does something else with the host's files that may hang.
    pub(super) fn watch<T>(&self, call: String, work: impl FnOnce() -> T) -> T {
        self.calls.watch(call, None, work)
    }

    /// Every place where the host's absolute `path` may be for us.
    pub(super) fn places(&self, path: &str) -> Vec<PathBuf> {
        let below = |root: &PathBuf| root.join(path.trim_start_matches('/'));
        let dev = self.dev.iter().filter(|_| path.starts_with("/dev/"));
        std::iter::once(&self.root).chain(dev).map(below).collect()
    }

    /// Where the host's absolute `path` is for us.
    fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}
