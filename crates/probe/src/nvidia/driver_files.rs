//! The driver's files that a container needs: facts for CDI specs.
//!
//! A look reads the names in a few folders and the first bytes of some eighty files. It is done when
//! the driver or its devices changed; besides, the folders are asked every minute whether they did.

mod cache;
mod header;
mod libraries;
mod nodes;
mod rest;
mod root;
mod search;

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use model::{Device, Driver, DriverFiles, PciAddress};
use tokio::time::Instant;

use self::{
    root::Root,
    search::{Found, Search, join},
};
use super::files::Files;

/// The time between two looks at what changed.
const PERIOD: Duration = Duration::from_secs(60);

/// How coarse the times of a file system may be.
const SETTLED: Duration = Duration::from_secs(2);

/// Finds the driver's files, and keeps what it found.
#[derive(Debug)]
pub(super) struct Finder {
    root: Root,
    files: Files,
    last: Option<Last>,
}

/// What was found last.
#[derive(Debug)]
struct Last {
    key: Key,
    checked: Instant,
    folders: Vec<Folder>,
    found: Arc<DriverFiles>,
}

/// A folder that was asked.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    stamp: Option<Stamp>,
    /// Whether it changed so short before that it may change again without a new time.
    young: bool,
}

/// What it depends on besides the folders.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    driver: Driver,
    cards: Vec<PciAddress>,
    nodes: Vec<String>,
}

/// Tells a folder from what it was before something in it came, went or was renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

// === impl Finder ===

impl Finder {
    /// Looks below `root`, as this process sees it; device nodes are among the host's `files`.
    pub(super) fn new(root: impl Into<PathBuf>, files: Files) -> Self {
        Self {
            root: Root::new(root),
            files,
            last: None,
        }
    }

    /// The files of this driver and the nodes of these devices, at this time.
    pub(super) fn look(
        &mut self,
        driver: &Driver,
        devices: &[Device],
        now: Instant,
    ) -> Arc<DriverFiles> {
        let key = Key::of(driver, devices);
        if let Some(last) = &mut self.last
            && last.key == key
            && last.is_fresh(&self.files, now)
        {
            return Arc::clone(&last.found);
        }
        let began = SystemTime::now();
        let (found, folders) = self.find(&key);
        let folder = |path| Folder::of(&self.files, path, began);
        let folders = folders.into_iter().map(folder).collect();
        // Who has the same already compares by address.
        let found = match self.last.take() {
            Some(last) if *last.found == found => last.found,
            _ => Arc::new(found),
        };
        self.last = Some(Last {
            key,
            checked: now,
            folders,
            found: Arc::clone(&found),
        });
        found
    }

    /// What there is, and the folders that were asked.
    fn find(&self, key: &Key) -> (DriverFiles, Vec<PathBuf>) {
        let version = Some(key.driver.version.as_str());
        let version = version.filter(|version| rest::is_name(version) && *version != "unknown");
        let library = key.driver.library.as_deref();
        let library = library.and_then(|path| self.inside(path));
        let mut search = Search::new(&self.root, &self.files);
        let version = libraries::add(&mut search, version, library.as_deref());
        if !version.is_empty() {
            rest::add(&mut search, &version);
        }
        let hooks = rest::hooks(&mut search);
        let Found {
            files,
            problems,
            folders,
        } = search.finish();
        let folders = folders.iter().map(|folder| self.root.place(folder));
        let nodes = nodes::folders().flat_map(|folder| self.files.places(&join(folder, "")));
        let found = DriverFiles {
            files,
            nodes: nodes::read(&self.files),
            drm: nodes::drm(&self.files, key.cards.iter().copied()),
            hooks,
            problems,
        };
        (found, folders.chain(nodes).collect())
    }

    /// The folder of a file of ours, seen from inside the root.
    fn inside(&self, path: &str) -> Option<String> {
        let folder = Path::new(path).parent()?;
        let inside = folder.strip_prefix(self.root.folder()).ok()?;
        Some(format!("/{}", inside.to_str()?))
    }
}

// === impl Last ===

impl Last {
    /// Whether nothing is known to have changed.
    fn is_fresh(&mut self, files: &Files, now: Instant) -> bool {
        if now.saturating_duration_since(self.checked) < PERIOD {
            return true;
        }
        self.checked = now;
        let mut folders = self.folders.iter();
        folders.all(|folder| !folder.young && Stamp::of(files, &folder.path) == folder.stamp)
    }
}

// === impl Folder ===

impl Folder {
    /// The folder as it is now, after a look that began then.
    fn of(files: &Files, path: PathBuf, began: SystemTime) -> Self {
        let stamp = Stamp::of(files, &path);
        let began = began.duration_since(UNIX_EPOCH).unwrap_or_default();
        let settled = began.saturating_sub(SETTLED).as_secs();
        let is_young = |stamp: &Stamp| u64::try_from(stamp.changed.0).is_ok_and(|at| at >= settled);
        Self {
            young: stamp.as_ref().is_some_and(is_young),
            path,
            stamp,
        }
    }
}

// === impl Key ===

impl Key {
    fn of(driver: &Driver, devices: &[Device]) -> Self {
        let mut cards: Vec<_> = devices.iter().filter_map(|device| device.pci).collect();
        let nodes = devices.iter().flat_map(|device| &device.nodes);
        let mut nodes: Vec<_> = nodes.map(|node| node.path.clone()).collect();
        cards.sort();
        cards.dedup();
        nodes.sort();
        nodes.dedup();
        Self {
            driver: driver.clone(),
            cards,
            nodes,
        }
    }
}

// === impl Stamp ===

impl Stamp {
    fn of(files: &Files, path: &Path) -> Option<Self> {
        let meta = files.watch(format!("stat {}", path.display()), || {
            fs_err::metadata(path).ok()
        })?;
        Some(Self {
            device: meta.dev(),
            inode: meta.ino(),
            changed: (meta.mtime(), meta.mtime_nsec()),
        })
    }
}

/// Reads bytes as the loader's cache, and looks for the files of a driver below a folder: a door for
/// the fuzz targets, and for nothing else.
pub(super) fn fuzz(cache: &[u8], root: &Path, version: &str) -> DriverFiles {
    for (name, path) in cache::entries(cache) {
        assert!(!name.contains('\0') && !path.contains('\0'));
    }
    let driver = Driver {
        version: version.to_owned(),
        cuda: None,
        library: None,
        instance: None,
    };
    let mut finder = Finder::new(root, Files::new(root, Arc::default()));
    Arc::unwrap_or_clone({
        let found = finder.look(&driver, &[], Instant::now());
        drop(finder);
        found
    })
}

#[cfg(test)]
mod tests;
