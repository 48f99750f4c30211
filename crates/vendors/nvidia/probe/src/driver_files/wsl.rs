//! Driver files under WSL. The driver is in Windows' driver store, one folder for each driver, and
//! the libraries that load it are in another folder. Only Windows knows which store belongs to
//! which card, so here a store is NVIDIA's if it has CUDA's library.

use std::collections::BTreeSet;

use model::FileKind;

use super::{
    libraries,
    search::{RootSearch, WantedKind, join_path},
};

/// Folders of the driver store, and of the libraries that load it.
const STORES: &str = "/usr/lib/wsl/drivers";
const LIB: &str = "/usr/lib/wsl/lib";

/// Library that marks a driver store of NVIDIA's.
const CUDA: &str = "libcuda.so.1.1";

/// Prefixes of NVIDIA's libraries, and of the library through which they reach Windows.
const LIBRARIES: [&str; 3] = ["libcuda", "libnv", "libdxcore"];

/// Device code that CUDA's library expects in its own folder.
const CUBINS: &str = "nvcubins.bin";

/// Program in the store, and its path in a container.
const SMI: &str = "nvidia-smi";
const SMI_INSIDE: &str = "/usr/bin/nvidia-smi";

/// Most folders of the driver store that are read.
const MOST_STORES: usize = 8192;

/// Adds all files.
pub(super) fn add_wsl_files(search: &mut RootSearch<'_>) {
    let stores = stores(search);
    if stores.is_empty() {
        search.add_problem(format!(
            "no folder in {STORES} has {CUDA}, so containers have no more than what is in {LIB}"
        ));
    }
    if stores.len() > 1 {
        search.add_problem(format!(
            "{} of the folders in {STORES} are NVIDIA's ({}): containers have all of them; remove \
             old drivers in Windows if CUDA does not start",
            stores.len(),
            stores.join(", ")
        ));
    }
    let mut seen = BTreeSet::new();
    for store in &stores {
        let names = libraries::add_named(search, store, is_ours);
        seen.extend(names.iter().map(|name| stem(name).to_owned()));
        if let Some(path) = search.find_path(&join_path(store, CUBINS), WantedKind::File) {
            search.add_file(path, FileKind::Config, None);
        }
    }
    // A library that a store has is not added from this folder too: some libraries search the store
    // for it.
    if let Some(folder) = search.find_folder(LIB) {
        libraries::add_named(search, &folder, |name| {
            is_ours(name) && !seen.contains(stem(name))
        });
    }
    for folder in stores.iter().map(String::as_str).chain([LIB]) {
        if let Some(path) = search.find_path(&join_path(folder, SMI), WantedKind::Program) {
            search.add_file(path, FileKind::Binary, Some(SMI_INSIDE));
            break;
        }
    }
}

/// Returns the paths of NVIDIA's driver stores, without links.
fn stores(search: &mut RootSearch<'_>) -> Vec<String> {
    let Some(folder) = search.find_folder(STORES) else {
        return Vec::new();
    };
    let items = search
        .list_folder(&folder)
        .items
        .into_iter()
        .take(MOST_STORES);
    let mut stores = Vec::new();
    for (name, _) in items {
        let store = join_path(&folder, &name);
        if search.resolve_path(&join_path(&store, CUDA)).is_some() {
            stores.extend(search.find_folder(&store));
        }
    }
    stores
}

/// Returns true if the name is that of one of NVIDIA's libraries.
fn is_ours(name: &str) -> bool {
    name.contains(".so") && LIBRARIES.iter().any(|begin| name.starts_with(begin))
}

/// Returns a library's name without its versions.
fn stem(name: &str) -> &str {
    name.split_once(".so").map_or(name, |(stem, _)| stem)
}
