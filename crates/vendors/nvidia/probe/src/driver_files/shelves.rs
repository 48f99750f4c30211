//! Folders that may have a driver's libraries: the usual ones, and those in the loader's cache.

use std::collections::BTreeSet;

use super::{
    cache,
    root::FolderListing,
    search::{RootSearch, WantedKind, join_path},
};

/// Usual folders of driver libraries.
const FOLDERS: [&str; 24] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/lib64",
    "/lib",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib/x86_64-linux-gnu/nvidia",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib64/nvidia",
    "/usr/lib/nvidia",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/local/lib/x86_64-linux-gnu",
    "/usr/local/lib/aarch64-linux-gnu",
    "/usr/local/lib64",
    "/usr/local/lib",
    "/usr/lib/nvidia/current",
    "/usr/lib64/nvidia/current",
    "/run/opengl-driver/lib",
    "/",
];

/// Folders below a library folder that have libraries or links to them.
const BELOW: [&str; 2] = ["vdpau", "gbm"];

/// Prefixes of the libraries that identify the driver, the better one first.
pub(super) const MAIN: [&str; 2] = ["libcuda.so.", "libnvidia-ml.so."];

/// Path of the loader's cache, and the most bytes that are read of it.
const CACHE: &str = "/etc/ld.so.cache";
const MOST_CACHE: u64 = 16 << 20;

/// Most paths that are taken from the cache.
const MOST_FOLDERS: usize = 64;

/// Folder with libraries, and the names in it.
#[derive(Debug)]
pub(super) struct LibraryFolder {
    pub(super) folder: String,
    pub(super) listing: FolderListing,
}

/// Lists every folder that may have libraries, each once.
pub(super) fn find_library_folders(
    search: &mut RootSearch<'_>,
    extra: Option<&str>,
) -> Vec<LibraryFolder> {
    let mut names: Vec<String> = FOLDERS.map(str::to_owned).into();
    names.extend(extra.map(str::to_owned));
    names.extend(cached(search));
    let mut seen = BTreeSet::new();
    let mut shelves = Vec::new();
    for name in names {
        let Some(folder) = search.find_folder(&name).filter(|f| seen.insert(f.clone())) else {
            continue;
        };
        let listing = search.list_folder(&folder);
        for below in BELOW {
            let is_there = |(name, kind): &(String, std::fs::FileType)| {
                name == below && (kind.is_dir() || kind.is_symlink())
            };
            if !listing.items.iter().any(is_there) {
                continue;
            }
            let below = search.find_folder(&join_path(&folder, below));
            if let Some(folder) = below.filter(|below| seen.insert(below.clone())) {
                let listing = search.list_folder(&folder);
                shelves.push(LibraryFolder { folder, listing });
            }
        }
        shelves.push(LibraryFolder { folder, listing });
    }
    shelves
}

/// Returns the folders in which the loader finds the driver's main libraries.
fn cached(search: &mut RootSearch<'_>) -> Vec<String> {
    let Some(path) = search.find_path(CACHE, WantedKind::File) else {
        return Vec::new();
    };
    let bytes = search.first_bytes(&path, MOST_CACHE).unwrap_or_default();
    let is_main =
        |(name, _): &cache::CacheEntry<'_>| MAIN.iter().any(|main| name.starts_with(main));
    let paths = cache::cache_entries(&bytes)
        .filter(is_main)
        .map(|(_, path)| path);
    let paths: BTreeSet<&str> = paths
        .filter(|p| p.starts_with('/'))
        .take(MOST_FOLDERS)
        .collect();
    let mut folders = BTreeSet::new();
    for path in paths {
        let real = search.resolve_path(path);
        // Debian's alternatives: the cache names a link in one folder, and the file is in another.
        let both = [Some(path), real.as_deref()];
        let parents = both
            .into_iter()
            .flatten()
            .filter_map(|path| path.rsplit_once('/'));
        folders.extend(parents.map(|(folder, _)| folder.to_owned()));
    }
    folders
        .into_iter()
        .filter(|folder| !folder.is_empty())
        .collect()
}
