//! The driver's files that a container needs: facts for CDI specs.
//!
//! A search reads the names in a few folders and the headers of about eighty libraries. It is made
//! when the driver changed, or when one of the folders did; the folders are checked every minute.
//! The device nodes are read in each survey.

mod cache;
mod companions;
mod csv;
mod elf;
mod glob;
mod libraries;
mod nodes;
mod rest;
mod root;
mod search;
mod shelves;
mod tegra;
mod wsl;
mod xorg;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use host::FileIdentity;
use model::{Device, Driver, DriverFiles, PciAddress, Platform, names};
use probe::sysfs::HostFiles;
use tokio::time::Instant;

pub(super) use self::nodes::strays;
use self::{
    root::DriverRoot,
    search::{RootSearch, SearchResult},
};
use super::platform;

/// Time between two checks of the folders.
const PERIOD: Duration = Duration::from_secs(60);

/// Coarsest resolution of modification times that is expected of a file system.
const SETTLED: Duration = Duration::from_secs(2);

/// Finds the driver's files, and keeps the result of the last search.
#[derive(Debug)]
pub(super) struct FileFinder {
    root: DriverRoot,
    files: HostFiles,
    last: Option<LastSearch>,
}

/// Result of the last search, and the state that tells if it is still right.
#[derive(Debug)]
struct LastSearch {
    driver: Driver,
    platform: Platform,
    /// Patterns of the device nodes of a Tegra board.
    board: Vec<String>,
    checked: Instant,
    folders: Vec<SearchedFolder>,
    found: Arc<DriverFiles>,
}

/// Folder that was searched.
#[derive(Debug)]
struct SearchedFolder {
    path: String,
    /// Identity of the folder; it changes when an entry is added, removed or renamed.
    identity: Option<FileIdentity>,
    /// True if it changed so shortly before the search that it may change again under the same
    /// time.
    young: bool,
}

// === impl FileFinder ===

impl FileFinder {
    /// Creates a finder that searches below `root`, a path of this process. Device nodes are read
    /// from the host's `files`.
    pub(super) fn new(root: impl Into<PathBuf>, files: HostFiles) -> Self {
        Self {
            root: DriverRoot::new(root),
            files,
            last: None,
        }
    }

    /// Returns the files of this driver and the nodes of these devices. Searches again only if
    /// something changed; an unchanged result keeps its address.
    pub(super) fn find_current_files(
        &mut self,
        driver: &Driver,
        devices: &[Device],
        now: Instant,
    ) -> Arc<DriverFiles> {
        let mut last = self.last.take();
        let platform = self.detect_platform(devices);
        let is_fresh = |last: &mut LastSearch| {
            last.driver == *driver
                && last.platform == platform
                && last.is_fresh(&self.files, &self.root, now)
        };
        let is_fresh = last.as_mut().is_some_and(is_fresh);
        let last = match last {
            Some(last) if is_fresh => last,
            before => self.search(driver, platform, now, before),
        };
        let last = self.last.insert(last);
        let cards: BTreeSet<PciAddress> = devices.iter().filter_map(|device| device.pci).collect();
        let mut nodes = nodes::read_node_stats(&self.files);
        let drm = nodes::find_drm_nodes(&self.files, cards.into_iter());
        let board = tegra::find_board_nodes(&self.files, &last.board, &mut nodes);
        // Readers compare results by address, so an equal result must not be copied.
        let old = &last.found;
        if (&old.nodes, &old.drm, &old.board_nodes) != (&nodes, &drm, &board) {
            let found = Arc::make_mut(&mut last.found);
            (found.nodes, found.drm, found.board_nodes) = (nodes, drm, board);
        }
        Arc::clone(&last.found)
    }

    /// Searches the driver's root. A result equal to the one before keeps its address.
    fn search(
        &self,
        driver: &Driver,
        platform: Platform,
        now: Instant,
        before: Option<LastSearch>,
    ) -> LastSearch {
        let began = SystemTime::now();
        let (found, folders, board) = self.search_root(driver, platform);
        let folder = |path| SearchedFolder::after_search(&self.files, &self.root, path, began);
        let folders = folders.into_iter().map(folder).collect();
        let same = |last: &LastSearch| {
            let old = &last.found;
            let old = (old.platform, &old.files, &old.hooks, &old.problems);
            old == (platform, &found.files, &found.hooks, &found.problems)
        };
        let found = match before {
            Some(last) if same(&last) => last.found,
            _ => Arc::new(found),
        };
        LastSearch {
            driver: driver.clone(),
            platform,
            board,
            checked: now,
            folders,
            found,
        }
    }

    /// Makes one search. Returns the files without device nodes, the folders that were searched,
    /// and the patterns of a board's nodes.
    fn search_root(
        &self,
        driver: &Driver,
        platform: Platform,
    ) -> (DriverFiles, BTreeSet<String>, Vec<String>) {
        let mut search = RootSearch::new(&self.root, &self.files);
        let mut board = Vec::new();
        match platform {
            Platform::Usual => self.add_usual_files(&mut search, driver),
            Platform::Wsl => wsl::add_wsl_files(&mut search),
            Platform::Tegra => board = tegra::add_board_files(&mut search),
        }
        let hooks = rest::hooks(&mut search);
        let SearchResult {
            files,
            problems,
            folders,
        } = search.into_result();
        let found = DriverFiles {
            platform,
            files,
            hooks,
            problems,
            ..DriverFiles::default()
        };
        (found, folders, board)
    }

    /// Returns the kind of machine that has these devices.
    fn detect_platform(&self, devices: &[Device]) -> Platform {
        let is_board = |device: &Device| {
            device.bool_attribute(&names::INTEGRATED) == Some(true)
                || device.product_name().is_some_and(platform::is_integrated)
        };
        match devices.iter().any(is_board) {
            true => Platform::Tegra,
            false if platform::is_wsl(&self.files) => Platform::Wsl,
            false => Platform::Usual,
        }
    }

    /// Adds the files of a driver that is installed in the usual way.
    fn add_usual_files(&self, search: &mut RootSearch<'_>, driver: &Driver) {
        let version = Some(driver.version.as_str());
        let version = version.filter(|version| rest::is_name(version) && *version != "unknown");
        // A library that was found outside the usual folders shows where the others are.
        let library = driver.library.as_deref();
        let library = library.and_then(|path| self.folder_in_root(path));
        let version = libraries::add_libraries(search, version, library.as_deref());
        if !version.is_empty() {
            rest::add_other_files(search, &version);
        }
    }

    /// Returns the folder of a file of this process, as a path inside the root.
    fn folder_in_root(&self, path: &str) -> Option<String> {
        let folder = Path::new(path).parent()?;
        let inside = folder.strip_prefix(self.root.root_folder()).ok()?;
        Some(format!("/{}", inside.to_str()?))
    }
}

// === impl LastSearch ===

impl LastSearch {
    /// Returns true if no folder changed since the search, or if they were checked less than a
    /// minute ago.
    fn is_fresh(&mut self, files: &HostFiles, root: &DriverRoot, now: Instant) -> bool {
        if now.saturating_duration_since(self.checked) < PERIOD {
            return true;
        }
        self.checked = now;
        let mut folders = self.folders.iter();
        folders.all(|folder| {
            !folder.young && folder_identity(files, root, &folder.path) == folder.identity
        })
    }
}

// === impl SearchedFolder ===

impl SearchedFolder {
    /// Reads the folder's identity after a search that began at `began`.
    fn after_search(files: &HostFiles, root: &DriverRoot, path: String, began: SystemTime) -> Self {
        let identity = folder_identity(files, root, &path);
        let began = began.duration_since(UNIX_EPOCH).unwrap_or_default();
        let settled = began.saturating_sub(SETTLED).as_secs();
        let is_young = |identity: FileIdentity| {
            u64::try_from(identity.modified_secs()).is_ok_and(|at| at >= settled)
        };
        Self {
            young: identity.is_some_and(is_young),
            path,
            identity,
        }
    }
}

/// Returns the identity of a folder.
fn folder_identity(files: &HostFiles, root: &DriverRoot, path: &str) -> Option<FileIdentity> {
    let call = format!("stat {}", root.display_path(path).display());
    let meta = files.watch_files(call, || root.read_metadata(path).ok())?;
    Some(FileIdentity::from_metadata(&meta))
}

/// Parses bytes as the loader's cache, and searches a folder for the driver files of these devices.
/// For the fuzz targets only.
pub(super) fn fuzz(cache: &[u8], root: &Path, version: &str, devices: &[Device]) -> DriverFiles {
    for (name, path) in cache::cache_entries(cache) {
        assert!(!name.contains('\0') && !path.contains('\0'));
    }
    let driver = Driver {
        version: version.to_owned(),
        cuda: None,
        library: None,
        instance: None,
    };
    let mut finder = FileFinder::new(root, HostFiles::new(root, Arc::default()));
    Arc::unwrap_or_clone({
        let found = finder.find_current_files(&driver, devices, Instant::now());
        drop(finder);
        found
    })
}

#[cfg(test)]
mod tests;
