//! The driver's libraries, and the links by which programs find them.

use std::collections::BTreeSet;

use model::{FileKind, FileLink};

use super::{
    cache,
    header::{self, Header, Machine},
    root::Listing,
    search::{Search, Want, join},
};

/// Where drivers put their libraries.
const FOLDERS: [&str; 25] = [
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
    WSL,
    "/",
];

/// Where Linux below Windows has them, under names without a version.
const WSL: &str = "/usr/lib/wsl/lib";
const WSL_NAMES: [&str; 4] = ["libcuda", "libnvidia", "libdxcore", "libnvdxgdmal"];

/// Libraries with versions of their own: the name, and how many numbers follow it at least.
const OTHERS: [(&str, usize); 4] = [
    ("libnvidia-nvvm70.so.", 1),
    ("libnvidia-egl-gbm.so.", 2),
    ("libnvidia-egl-wayland.so.", 2),
    ("libnvidia-egl-wayland2.so.", 2),
];

/// Folders below a library folder that have libraries, or links to them.
const BELOW: [&str; 2] = ["vdpau", "gbm"];

/// Where the X server's modules are, below a library folder and elsewhere.
const XORG_BELOW: [&str; 5] = [
    "nvidia/xorg",
    "xorg/modules/drivers",
    "xorg/modules/extensions",
    "xorg/modules/updates/drivers",
    "xorg/modules/updates/extensions",
];
const XORG: [&str; 8] = [
    "/usr/lib/xorg/modules/drivers",
    "/usr/lib/xorg/modules/extensions",
    "/usr/lib/xorg/modules/updates/drivers",
    "/usr/lib/xorg/modules/updates/extensions",
    "/usr/lib64/xorg/modules/drivers",
    "/usr/lib64/xorg/modules/extensions",
    "/usr/lib64/xorg/modules/updates/drivers",
    "/usr/lib64/xorg/modules/updates/extensions",
];

/// The libraries by which the driver is known, the first the better.
const MAIN: [&str; 2] = ["libcuda.so.", "libnvidia-ml.so."];

/// The loader's cache, and the most that is read of it.
const CACHE: &str = "/etc/ld.so.cache";
const MOST_CACHE: u64 = 16 << 20;

/// The most folders that are taken from it.
const MOST_FOLDERS: usize = 64;

/// How far a link to a link is followed by names.
const MOST_HOPS: usize = 8;

/// A folder with libraries.
#[derive(Debug)]
struct Shelf {
    folder: String,
    listing: Listing,
}

/// A library that may be taken.
#[derive(Debug)]
struct Library {
    folder: String,
    path: String,
    name: String,
    machine: Machine,
}

/// Adds the libraries of this version; without one, that of the first main library that is found.
/// `extra` is one more folder to look in.
pub(super) fn add(search: &mut Search<'_>, version: Option<&str>, extra: Option<&str>) -> String {
    let shelves = shelves(search, extra);
    let version = match version {
        Some(version) => version.to_owned(),
        None => shelves.iter().find_map(guess).unwrap_or_default(),
    };
    if version.is_empty() {
        search
            .problem("the driver's version is not known, so its files cannot be told from others");
        return version;
    }
    let libraries: Vec<Library> = shelves
        .iter()
        .flat_map(|shelf| take(search, shelf, &version))
        .collect();
    let main = main(&libraries, &version).map(|main| (main.folder.clone(), main.machine));
    for library in libraries {
        let fits = main.as_ref().is_none_or(|(folder, machine)| {
            library.machine == *machine || is_below(&library.folder, folder)
        });
        if !fits {
            let path = &library.path;
            search.problem(format!("{path} is left out: it is for another machine"));
            continue;
        }
        let same = library.path.ends_with(&format!("/{}", library.name));
        let wanted = join(&library.folder, &library.name);
        let container = (!same).then_some(wanted.as_str());
        search.add(library.path, FileKind::Library, container);
    }
    let mut linked: Vec<Shelf> = shelves;
    linked.extend(xorg(search, main.map(|(folder, _)| folder), &version));
    for shelf in &linked {
        link(search, shelf);
    }
    version
}

/// Every folder that may have libraries, each once.
fn shelves(search: &mut Search<'_>, extra: Option<&str>) -> Vec<Shelf> {
    let mut names: Vec<String> = FOLDERS.map(str::to_owned).into();
    names.extend(extra.map(str::to_owned));
    names.extend(cached(search));
    let mut seen = BTreeSet::new();
    let mut shelves = Vec::new();
    for name in names {
        let Some(folder) = search.folder(&name).filter(|f| seen.insert(f.clone())) else {
            continue;
        };
        let listing = search.list(&folder);
        for below in BELOW {
            let is_there = |(name, kind): &(String, std::fs::FileType)| {
                name == below && (kind.is_dir() || kind.is_symlink())
            };
            if !listing.items.iter().any(is_there) {
                continue;
            }
            let below = search.folder(&join(&folder, below));
            if let Some(folder) = below.filter(|below| seen.insert(below.clone())) {
                let listing = search.list(&folder);
                shelves.push(Shelf { folder, listing });
            }
        }
        shelves.push(Shelf { folder, listing });
    }
    shelves
}

/// The folders in which the loader finds the driver's main libraries.
fn cached(search: &mut Search<'_>) -> Vec<String> {
    let Some(path) = search.get(CACHE, Want::File) else {
        return Vec::new();
    };
    let bytes = search.head(&path, MOST_CACHE).unwrap_or_default();
    let is_main = |(name, _): &cache::Entry<'_>| MAIN.iter().any(|main| name.starts_with(main));
    let paths = cache::entries(&bytes).filter(is_main).map(|(_, path)| path);
    let paths: BTreeSet<&str> = paths
        .filter(|p| p.starts_with('/'))
        .take(MOST_FOLDERS)
        .collect();
    let mut folders = BTreeSet::new();
    for path in paths {
        let real = search.resolve(path);
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

/// The version that a main library's name ends with.
fn guess(shelf: &Shelf) -> Option<String> {
    let names = || shelf.listing.items.iter().map(|(name, _)| name);
    let mut versions = MAIN
        .iter()
        .flat_map(|main| names().filter_map(move |name| name.strip_prefix(main)));
    versions
        .find(|version| numbers(version) >= 2)
        .map(str::to_owned)
}

/// The libraries in a folder that can be taken.
fn take(search: &mut Search<'_>, shelf: &Shelf, version: &str) -> Vec<Library> {
    let Shelf { folder, listing } = shelf;
    let wsl = folder == WSL;
    for odd in listing
        .odd
        .iter()
        .filter(|name| is_wanted(name, version, wsl))
    {
        let place = join(folder, odd);
        search.problem(format!(
            "{place:?} is left out: its name cannot be written down"
        ));
    }
    let names = listing.items.iter().map(|(name, _)| name);
    let names = names.filter(|name| is_wanted(name, version, wsl));
    names
        .filter_map(|name| library(search, folder, name))
        .collect()
}

fn library(search: &mut Search<'_>, folder: &str, name: &str) -> Option<Library> {
    let path = search.get(&join(folder, name), Want::File)?;
    let head = search.head(&path, header::SIZE)?;
    match Header::of(&head) {
        Header::Wide(machine) => Some(Library {
            folder: folder.to_owned(),
            path,
            name: name.to_owned(),
            machine,
        }),
        // Every driver has some for programs of the other kind.
        Header::Narrow => None,
        Header::Unknown => {
            search.problem(format!(
                "{path} is left out: it is no library for a known machine"
            ));
            None
        }
    }
}

/// The library by which the driver is known.
fn main<'a>(libraries: &'a [Library], version: &str) -> Option<&'a Library> {
    let find = |main: &&str| {
        let name = format!("{main}{version}");
        libraries.iter().find(|library| library.name == name)
    };
    MAIN.iter().find_map(find)
}

/// Adds the X server's modules; the folders in which they are.
fn xorg(search: &mut Search<'_>, main: Option<String>, version: &str) -> Vec<Shelf> {
    let below = main
        .into_iter()
        .flat_map(|folder| XORG_BELOW.map(|at| join(&folder, at)));
    let folders: Vec<String> = below.chain(XORG.map(str::to_owned)).collect();
    let mut shelves = Vec::new();
    for name in [
        "nvidia_drv.so".to_owned(),
        format!("libglxserver_nvidia.so.{version}"),
    ] {
        let found = folders.iter().find_map(|folder| {
            let folder = search.folder(folder)?;
            library(search, &folder, &name)
        });
        if let Some(library) = found {
            let listing = search.list(&library.folder);
            search.add(library.path, FileKind::Library, None);
            shelves.push(Shelf {
                folder: library.folder,
                listing,
            });
        }
    }
    shelves
}

/// Adds the links in a folder that lead to a library that was taken.
fn link(search: &mut Search<'_>, shelf: &Shelf) {
    let Shelf { folder, listing } = shelf;
    let items = listing.items.iter();
    let names = items.filter(|(name, kind)| kind.is_symlink() && name.contains(".so"));
    let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
    let links = search.links(folder, &names);
    for (name, target) in &links {
        let mut last = target;
        // A link to a neighbour needs no look at the disk.
        for _ in 0..MOST_HOPS {
            last = links.get(last).unwrap_or(last);
        }
        let path = match last.contains('/') {
            false => Some(join(folder, last)),
            true => search.resolve(&join(folder, name)),
        };
        if let Some(path) = path.filter(|path| search.has(path)) {
            let link = FileLink {
                path: join(folder, name),
                target: target.clone(),
            };
            search.add_link(&path, link);
        }
    }
}

/// Whether a library is the driver's, by its name.
fn is_wanted(name: &str, version: &str, wsl: bool) -> bool {
    let stem = name.strip_suffix(version).and_then(|s| s.strip_suffix('.'));
    if stem.is_some_and(|stem| stem.ends_with(".so")) {
        return true;
    }
    let has_own = |(other, count): &(&str, usize)| {
        let rest = name.strip_prefix(other);
        rest.is_some_and(|rest| numbers(rest) >= *count)
    };
    OTHERS.iter().any(has_own)
        || (wsl && name.contains(".so") && WSL_NAMES.iter().any(|start| name.starts_with(start)))
}

/// Whether a folder is another one, or in it.
fn is_below(folder: &str, other: &str) -> bool {
    let rest = folder.strip_prefix(other);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// How many numbers a version has; none where it is no version.
fn numbers(version: &str) -> usize {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    match version.split('.').all(is_number) {
        true => version.split('.').count(),
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("libcuda.so.580.95.05", true)]
    #[case("libcuda.so.1", false)]
    #[case("libcuda.so.580.95.06", false)]
    #[case("libcuda.580.95.05", false)]
    #[case("libnvidia-nvvm70.so.4", true)]
    #[case("libnvidia-nvvm70.so.", false)]
    #[case("libnvidia-egl-gbm.so.1.1.2", true)]
    #[case("libnvidia-egl-gbm.so.1", false)]
    #[case("libnvidia-egl-wayland2.so.1.0", true)]
    #[case("libc.so.6", false)]
    fn knows_the_driver_s_libraries_by_their_names(#[case] name: &str, #[case] wanted: bool) {
        assert_eq!(is_wanted(name, "580.95.05", false), wanted);
    }
}
