//! Linux below Windows: the driver is in Windows' driver store, one folder for each driver, and
//! what leads to it in a folder of its own. Windows knows which store belongs to which card; here
//! a store is NVIDIA's if it has CUDA's library.

use std::collections::BTreeSet;

use model::FileKind;

use super::{
    libraries,
    search::{Search, Want, join},
};

/// Where the driver store is to be seen, and the libraries that lead to it.
const STORES: &str = "/usr/lib/wsl/drivers";
const LIB: &str = "/usr/lib/wsl/lib";

/// What a driver store of NVIDIA's has.
const CUDA: &str = "libcuda.so.1.1";

/// The beginnings of the names of NVIDIA's libraries, and of the one that they reach Windows by.
const LIBRARIES: [&str; 3] = ["libcuda", "libnv", "libdxcore"];

/// Code for cards, which CUDA's library wants beside it.
const CUBINS: &str = "nvcubins.bin";

/// The program, and where a container looks for it.
const SMI: &str = "nvidia-smi";
const SMI_INSIDE: &str = "/usr/bin/nvidia-smi";

/// The most folders of the driver store that are looked at.
const MOST_STORES: usize = 8192;

/// Adds everything.
pub(super) fn add(search: &mut Search<'_>) {
    let stores = stores(search);
    if stores.is_empty() {
        search.problem(format!(
            "no folder in {STORES} has {CUDA}, so containers have no more than what is in {LIB}"
        ));
    }
    if stores.len() > 1 {
        search.problem(format!(
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
        if let Some(path) = search.get(&join(store, CUBINS), Want::File) {
            search.add(path, FileKind::Config, None);
        }
    }
    // What the stores have is not taken from beside them: there are libraries that look for it.
    if let Some(folder) = search.folder(LIB) {
        libraries::add_named(search, &folder, |name| {
            is_ours(name) && !seen.contains(stem(name))
        });
    }
    for folder in stores.iter().map(String::as_str).chain([LIB]) {
        if let Some(path) = search.get(&join(folder, SMI), Want::Program) {
            search.add(path, FileKind::Binary, Some(SMI_INSIDE));
            break;
        }
    }
}

/// The driver stores of NVIDIA's, without links.
fn stores(search: &mut Search<'_>) -> Vec<String> {
    let Some(folder) = search.folder(STORES) else {
        return Vec::new();
    };
    let items = search.list(&folder).items.into_iter().take(MOST_STORES);
    let mut stores = Vec::new();
    for (name, _) in items {
        let store = join(&folder, &name);
        if search.resolve(&join(&store, CUDA)).is_some() {
            stores.extend(search.folder(&store));
        }
    }
    stores
}

fn is_ours(name: &str) -> bool {
    name.contains(".so") && LIBRARIES.iter().any(|begin| name.starts_with(begin))
}

/// A library's name without its versions.
fn stem(name: &str) -> &str {
    name.split_once(".so").map_or(name, |(stem, _)| stem)
}
