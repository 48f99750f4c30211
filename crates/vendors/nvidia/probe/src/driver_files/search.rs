//! One search of the driver's folder. Collects the files, the problems, and the folders that were
//! searched.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _},
};

use model::{DriverFile, FileKind, FileLink};
use probe::sysfs::HostFiles;

use super::{
    rest::is_name,
    root::{DriverRoot, FolderListing, MOST_NAMES, PathFailure},
};

/// Most bytes of paths in a result, so that the report stays shorter than the longest line that the
/// agent reads.
const MOST_TEXT: usize = 1 << 20;

/// Most problems in a result; more of them are only counted.
const MOST_PROBLEMS: usize = 64;

/// Kind of file that a path must lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedKind {
    File,
    Program,
    Socket,
    Folder,
}

/// Search in progress.
#[derive(Debug)]
pub(super) struct RootSearch<'a> {
    root: &'a DriverRoot,
    files: &'a HostFiles,
    /// Files found, by path and by path in the container.
    found: BTreeMap<(String, Option<String>), DriverFile>,
    /// Bytes of all paths found.
    text: usize,
    /// Folders that were searched, by the paths that were used.
    folders: BTreeSet<String>,
    problems: Vec<String>,
    unsaid: usize,
}

/// Result of a search.
#[derive(Debug)]
pub(super) struct SearchResult {
    pub(super) files: Vec<DriverFile>,
    pub(super) problems: Vec<String>,
    pub(super) folders: BTreeSet<String>,
}

// === impl RootSearch ===

impl<'a> RootSearch<'a> {
    pub(super) fn new(root: &'a DriverRoot, files: &'a HostFiles) -> Self {
        Self {
            root,
            files,
            found: BTreeMap::new(),
            text: 0,
            folders: BTreeSet::new(),
            problems: Vec::new(),
            unsaid: 0,
        }
    }

    /// Returns the host files.
    pub(super) fn host_files(&self) -> &'a HostFiles {
        self.files
    }

    /// Adds a problem: a thing that could not be read or is left out. Each is added once.
    pub(super) fn add_problem(&mut self, what: impl Into<String>) {
        let what = what.into();
        if self.problems.contains(&what) {
            return;
        }
        match self.problems.len() < MOST_PROBLEMS {
            true => self.problems.push(what),
            false => self.unsaid += 1,
        }
    }

    /// Returns the path of a folder without links; `None` if it is not a folder.
    pub(super) fn find_folder(&mut self, folder: &str) -> Option<String> {
        self.folders.insert(folder.to_owned());
        let path = self.resolve_path(folder)?;
        let kind = self.watch_root_call("stat", &path, |root| root.read_metadata(&path));
        kind.is_ok_and(|meta| meta.is_dir()).then_some(path)
    }

    /// Lists a folder whose path has no links. A folder that is absent is empty.
    pub(super) fn list_folder(&mut self, folder: &str) -> FolderListing {
        self.folders.insert(folder.to_owned());
        match self.watch_root_call("list", folder, |root| root.list_root_folder(folder)) {
            Ok(listing) => {
                if listing.cut {
                    self.add_problem(format!(
                        "{folder} has more than {MOST_NAMES} names; the others were not looked at"
                    ));
                }
                listing
            }
            Err(PathFailure::Missing) => FolderListing::default(),
            Err(failure) => {
                self.add_problem(format!("cannot list {folder}: {failure}"));
                FolderListing::default()
            }
        }
    }

    /// Notes a path whose change makes the next search necessary.
    pub(super) fn note_path(&mut self, path: &str) {
        self.folders.insert(path.to_owned());
    }

    /// Resolves the links of a path; `None` if it does not exist.
    pub(super) fn resolve_path(&mut self, path: &str) -> Option<String> {
        match self.watch_root_call("look up", path, |root| root.resolve_links(path)) {
            Ok(path) => Some(path),
            Err(PathFailure::Missing) => None,
            Err(failure) => {
                self.add_problem(format!("cannot look up {path}: {failure}"));
                None
            }
        }
    }

    /// Resolves the links of a path that must be of a kind; `None` if it does not exist or is of
    /// another kind.
    pub(super) fn find_path(&mut self, path: &str, want: WantedKind) -> Option<String> {
        // A change of the link shows in the folder of its name, a change of the file in the folder
        // of the resolved path.
        self.folders.insert(parent(path).to_owned());
        let real = self.resolve_path(path)?;
        self.folders.insert(parent(&real).to_owned());
        match self.watch_root_call("stat", &real, |root| root.read_metadata(&real)) {
            Ok(meta) if want.is_met(&meta) => Some(real),
            Ok(_) => {
                self.add_problem(format!(
                    "{path} is left out: it is {}",
                    want.mismatch_text()
                ));
                None
            }
            Err(failure) => {
                self.add_problem(format!("cannot look at {path}: {failure}"));
                None
            }
        }
    }

    /// Reads the first bytes of a file whose path has no links.
    pub(super) fn first_bytes(&mut self, path: &str, most: u64) -> Option<Vec<u8>> {
        match self.watch_root_call("read", path, |root| root.read_head(path, most)) {
            Ok(bytes) => Some(bytes),
            Err(failure) => {
                self.add_problem(format!("{path} is left out, it cannot be read: {failure}"));
                None
            }
        }
    }

    /// Returns the target of the link at a path; `None` if it is not a link.
    pub(super) fn link_target(&mut self, path: &str) -> Option<String> {
        let (folder, name) = path.rsplit_once('/')?;
        let real = join_path(&self.resolve_path(folder)?, name);
        self.watch_root_call("read the link", &real, |root| root.read_link_target(&real))
    }

    /// Returns the links in a folder that have one of these names, with their targets.
    pub(super) fn folder_links(&self, folder: &str, names: &[String]) -> BTreeMap<String, String> {
        let target = |root: &DriverRoot, name: &String| {
            let target = root.read_link_target(&join_path(folder, name))?;
            Some((name.clone(), target))
        };
        self.watch_root_call("read the links of", folder, |root| {
            names.iter().filter_map(|name| target(root, name)).collect()
        })
    }

    /// Adds a file; `container` is its path in a container.
    pub(super) fn add_file(&mut self, path: String, kind: FileKind, container: Option<&str>) {
        let container_path = container.filter(|at| *at != path).map(str::to_owned);
        let key = (path.clone(), container_path.clone());
        if self.found.contains_key(&key)
            || !self.count_path_bytes(path.len() + container.map_or(0, str::len))
        {
            return;
        }
        let is_library = matches!(kind, FileKind::Library | FileKind::Companion);
        let soname = match is_library {
            true => self.loader_name(&path, container.unwrap_or(&path)),
            false => None,
        };
        let file = DriverFile {
            path,
            kind,
            container_path,
            soname,
            links: Vec::new(),
        };
        self.found.insert(key, file);
    }

    /// Returns true if a file with this path was added.
    pub(super) fn has_file(&self, path: &str) -> bool {
        self.found.contains_key(&(path.to_owned(), None::<String>))
    }

    /// Adds a link to a file that was added before.
    pub(super) fn add_link(&mut self, path: &str, link: FileLink) {
        if !self.count_path_bytes(link.path.len() + link.target.len()) {
            return;
        }
        if let Some(file) = self.found.get_mut(&(path.to_owned(), None)) {
            file.links.push(link);
            file.links.sort();
            file.links.dedup();
        }
    }

    /// Ends the search.
    pub(super) fn into_result(mut self) -> SearchResult {
        if self.unsaid > 0 {
            self.problems.push(format!("and {} more", self.unsaid));
        }
        SearchResult {
            files: self.found.into_values().collect(),
            problems: self.problems,
            folders: self.folders,
        }
    }

    /// Returns the soname of a library if it differs from the file's name. A soname of another
    /// library is ignored: a link of that name would hide the other library.
    fn loader_name(&self, path: &str, wanted: &str) -> Option<String> {
        let soname = self.watch_root_call("read", path, |root| root.read_soname(path))?;
        let name = wanted.rsplit('/').next()?;
        let stem = |name: &str| Some(name.split_once(".so")?.0.to_owned());
        let fits = soname != name && is_name(&soname) && stem(&soname)? == stem(name)?;
        fits.then_some(soname)
    }

    /// Counts bytes of paths; `false` if the result is full.
    fn count_path_bytes(&mut self, bytes: usize) -> bool {
        self.text = self.text.saturating_add(bytes);
        let fits = self.text <= MOST_TEXT;
        if !fits {
            self.add_problem(
                "there are more driver files than are reported; the others are left out",
            );
        }
        fits
    }

    /// Runs file access as a recorded call, because the driver's folder may be on a disk that
    /// hangs.
    fn watch_root_call<T>(&self, verb: &str, path: &str, look: impl FnOnce(&DriverRoot) -> T) -> T {
        let call = format!("{verb} {}", self.root.display_path(path).display());
        self.files.watch_files(call, || look(self.root))
    }
}

// === impl WantedKind ===

impl WantedKind {
    fn is_met(self, meta: &std::fs::Metadata) -> bool {
        match self {
            Self::File => meta.is_file(),
            Self::Program => meta.is_file() && meta.permissions().mode() & 0o111 != 0,
            Self::Socket => meta.file_type().is_socket(),
            Self::Folder => meta.is_dir(),
        }
    }

    fn mismatch_text(self) -> &'static str {
        match self {
            Self::File => "no regular file",
            Self::Program => "no program that can be run",
            Self::Socket => "no socket",
            Self::Folder => "no folder",
        }
    }
}

/// Returns the parent folder of an absolute path.
fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some((folder, _)) if !folder.is_empty() => folder,
        _ => "/",
    }
}

/// Returns the path of a name in a folder.
pub(super) fn join_path(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}
