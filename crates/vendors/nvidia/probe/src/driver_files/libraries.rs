//! The driver's libraries, and the links by which programs find them.

use model::{FileKind, FileLink};

use super::{
    companions,
    elf::{self, Header, Machine},
    search::{Search, Want, join},
    shelves::{self, MAIN, Shelf},
    xorg,
};

/// Libraries with versions of their own: prefix of the name, and least count of numbers after it.
const OTHERS: [(&str, usize); 4] = [
    ("libnvidia-nvvm70.so.", 1),
    ("libnvidia-egl-gbm.so.", 2),
    ("libnvidia-egl-wayland.so.", 2),
    ("libnvidia-egl-wayland2.so.", 2),
];

/// Most links in a chain that is followed by names alone.
const MOST_HOPS: usize = 8;

/// Library file of the driver.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) folder: String,
    pub(super) path: String,
    name: String,
    pub(super) machine: Machine,
}

/// Adds the libraries of this version and returns the version. Without a version, that of the first
/// main library is used; empty if none is found. `extra` is one more folder to search.
pub(super) fn add(search: &mut Search<'_>, version: Option<&str>, extra: Option<&str>) -> String {
    let shelves = shelves::all(search, extra);
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
        // Some distributions install libraries for a second architecture. The main library's
        // machine is the machine of the node.
        let fits = main.as_ref().is_none_or(|(folder, machine)| {
            library.machine == *machine || is_below(&library.folder, folder)
        });
        if !fits {
            let path = &library.path;
            search.problem(format!("{path} is left out: it is for another machine"));
            continue;
        }
        // The container gets the file under the name by which it was found, and not under the name
        // at the end of its links.
        let same = library.path.ends_with(&format!("/{}", library.name));
        let wanted = join(&library.folder, &library.name);
        let container = (!same).then_some(wanted.as_str());
        search.add(library.path, FileKind::Library, container);
    }
    companions::add(search, &shelves, main.as_ref().map(|(_, machine)| *machine));
    let mut linked: Vec<Shelf> = shelves;
    linked.extend(xorg::add(search, main.map(|(folder, _)| folder), &version));
    for shelf in &linked {
        link(search, shelf);
    }
    version
}

/// Adds the libraries in a folder whose names are wanted, with the links to them. Returns their
/// names.
pub(super) fn add_named(
    search: &mut Search<'_>,
    folder: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<String> {
    let items = search.list(folder).items.into_iter();
    let mut names: Vec<String> = items.map(|(name, _)| name).collect();
    names.retain(|name| is_wanted(name));
    names.retain(|name| {
        let library = library(search, folder, name);
        let is_one = library.is_some();
        if let Some(library) = library {
            search.add(library.path, FileKind::Library, None);
        }
        is_one
    });
    add_links(search, folder);
    names
}

/// Adds the links in a folder that lead to libraries that were added.
pub(super) fn add_links(search: &mut Search<'_>, folder: &str) {
    let shelf = Shelf {
        folder: folder.to_owned(),
        listing: search.list(folder),
    };
    link(search, &shelf);
}

/// Returns the version in the name of a main library. NVIDIA's toolkit too takes the version from
/// this suffix if the driver does not tell it.
fn guess(shelf: &Shelf) -> Option<String> {
    let names = || shelf.listing.items.iter().map(|(name, _)| name);
    let mut versions = MAIN
        .iter()
        .flat_map(|main| names().filter_map(move |name| name.strip_prefix(main)));
    versions
        .find(|version| numbers(version) >= 2)
        .map(str::to_owned)
}

/// Returns the driver's libraries in a folder. A library whose name is not printable becomes a
/// problem.
fn take(search: &mut Search<'_>, shelf: &Shelf, version: &str) -> Vec<Library> {
    let Shelf { folder, listing } = shelf;
    for odd in listing.odd.iter().filter(|name| is_wanted(name, version)) {
        let place = join(folder, odd);
        search.problem(format!(
            "{place:?} is left out: its name cannot be written down"
        ));
    }
    let names = listing.items.iter().map(|(name, _)| name);
    let names = names.filter(|name| is_wanted(name, version));
    names
        .filter_map(|name| library(search, folder, name))
        .collect()
}

/// Reads the header of a library in a folder; `None` if it is not for a known 64-bit machine.
pub(super) fn library(search: &mut Search<'_>, folder: &str, name: &str) -> Option<Library> {
    let path = search.get(&join(folder, name), Want::File)?;
    let head = search.head(&path, elf::SIZE)?;
    match Header::of(&head) {
        Header::Wide(machine) => Some(Library {
            folder: folder.to_owned(),
            path,
            name: name.to_owned(),
            machine,
        }),
        // Drivers install 32-bit libraries too. They are not offered, and that is not a problem.
        Header::Narrow => None,
        Header::Unknown => {
            search.problem(format!(
                "{path} is left out: it is no library for a known machine"
            ));
            None
        }
    }
}

/// Returns the main library of the driver.
fn main<'a>(libraries: &'a [Library], version: &str) -> Option<&'a Library> {
    let find = |main: &&str| {
        let name = format!("{main}{version}");
        libraries.iter().find(|library| library.name == name)
    };
    MAIN.iter().find_map(find)
}

/// Adds the links in a folder that lead to a library that was added.
fn link(search: &mut Search<'_>, shelf: &Shelf) {
    let Shelf { folder, listing } = shelf;
    let items = listing.items.iter();
    let names = items.filter(|(name, kind)| kind.is_symlink() && name.contains(".so"));
    let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
    let links = search.links(folder, &names);
    for (name, target) in &links {
        let mut last = target;
        // A link to a file in the same folder is followed without a system call.
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

/// Returns true if a library belongs to the driver, by its name.
fn is_wanted(name: &str, version: &str) -> bool {
    let stem = name.strip_suffix(version).and_then(|s| s.strip_suffix('.'));
    if stem.is_some_and(|stem| stem.ends_with(".so")) {
        return true;
    }
    let has_own = |(other, count): &(&str, usize)| {
        let rest = name.strip_prefix(other);
        rest.is_some_and(|rest| numbers(rest) >= *count)
    };
    OTHERS.iter().any(has_own)
}

/// Returns true if a folder is `other` or below it.
fn is_below(folder: &str, other: &str) -> bool {
    let rest = folder.strip_prefix(other);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Counts the numbers of a version; 0 if the text is not a version.
pub(super) fn numbers(version: &str) -> usize {
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
        assert_eq!(is_wanted(name, "580.95.05"), wanted);
    }
}
