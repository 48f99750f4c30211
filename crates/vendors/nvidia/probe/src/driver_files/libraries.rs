//! The driver's libraries, and the links by which programs find them.

use model::{FileKind, FileLink};

use super::{
    companions,
    elf::{self, ElfHeader, ElfMachine},
    search::{RootSearch, WantedKind, join_path},
    shelves::{self, LibraryFolder, MAIN},
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
pub(super) struct LibraryFile {
    pub(super) folder: String,
    pub(super) path: String,
    name: String,
    pub(super) machine: ElfMachine,
}

/// Adds the libraries of this version and returns the version. Without a version, that of the first
/// main library is used; empty if none is found. `extra` is one more folder to search.
pub(super) fn add_libraries(
    search: &mut RootSearch<'_>,
    version: Option<&str>,
    extra: Option<&str>,
) -> String {
    let shelves = shelves::find_library_folders(search, extra);
    let version = match version {
        Some(version) => version.to_owned(),
        None => shelves.iter().find_map(guess).unwrap_or_default(),
    };
    if version.is_empty() {
        search.add_problem(
            "the driver's version is not known, so its files cannot be told from others",
        );
        return version;
    }
    let libraries: Vec<LibraryFile> = shelves
        .iter()
        .flat_map(|shelf| find_driver_libraries(search, shelf, &version))
        .collect();
    let main =
        find_main_library(&libraries, &version).map(|main| (main.folder.clone(), main.machine));
    for library in libraries {
        // Some distributions install libraries for a second architecture. The main library's
        // machine is the machine of the node.
        let fits = main.as_ref().is_none_or(|(folder, machine)| {
            library.machine == *machine || is_below(&library.folder, folder)
        });
        if !fits {
            let path = &library.path;
            search.add_problem(format!("{path} is left out: it is for another machine"));
            continue;
        }
        // The container gets the file under the name by which it was found, and not under the name
        // at the end of its links.
        let same = library.path.ends_with(&format!("/{}", library.name));
        let wanted = join_path(&library.folder, &library.name);
        let container = (!same).then_some(wanted.as_str());
        search.add_file(library.path, FileKind::Library, container);
    }
    companions::add_companions(search, &shelves, main.as_ref().map(|(_, machine)| *machine));
    let mut linked: Vec<LibraryFolder> = shelves;
    linked.extend(xorg::add_xorg_modules(
        search,
        main.map(|(folder, _)| folder),
        &version,
    ));
    for shelf in &linked {
        add_folder_links(search, shelf);
    }
    version
}

/// Adds the libraries in a folder whose names are wanted, with the links to them. Returns their
/// names.
pub(super) fn add_named(
    search: &mut RootSearch<'_>,
    folder: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<String> {
    let items = search.list_folder(folder).items.into_iter();
    let mut names: Vec<String> = items.map(|(name, _)| name).collect();
    names.retain(|name| is_wanted(name));
    names.retain(|name| {
        let library = read_library(search, folder, name);
        let is_one = library.is_some();
        if let Some(library) = library {
            search.add_file(library.path, FileKind::Library, None);
        }
        is_one
    });
    add_links(search, folder);
    names
}

/// Adds the links in a folder that lead to libraries that were added.
pub(super) fn add_links(search: &mut RootSearch<'_>, folder: &str) {
    let shelf = LibraryFolder {
        folder: folder.to_owned(),
        listing: search.list_folder(folder),
    };
    add_folder_links(search, &shelf);
}

/// Returns the version in the name of a main library. NVIDIA's toolkit too takes the version from
/// this suffix if the driver does not tell it.
fn guess(shelf: &LibraryFolder) -> Option<String> {
    let names = || shelf.listing.items.iter().map(|(name, _)| name);
    let mut versions = MAIN
        .iter()
        .flat_map(|main| names().filter_map(move |name| name.strip_prefix(main)));
    versions
        .find(|version| count_version_numbers(version) >= 2)
        .map(str::to_owned)
}

/// Returns the driver's libraries in a folder. A library whose name is not printable becomes a
/// problem.
fn find_driver_libraries(
    search: &mut RootSearch<'_>,
    shelf: &LibraryFolder,
    version: &str,
) -> Vec<LibraryFile> {
    let LibraryFolder { folder, listing } = shelf;
    for odd in listing.odd.iter().filter(|name| is_wanted(name, version)) {
        let place = join_path(folder, odd);
        search.add_problem(format!(
            "{place:?} is left out: its name cannot be written down"
        ));
    }
    let names = listing.items.iter().map(|(name, _)| name);
    let names = names.filter(|name| is_wanted(name, version));
    names
        .filter_map(|name| read_library(search, folder, name))
        .collect()
}

/// Reads the header of a library in a folder; `None` if it is not for a known 64-bit machine.
pub(super) fn read_library(
    search: &mut RootSearch<'_>,
    folder: &str,
    name: &str,
) -> Option<LibraryFile> {
    let path = search.find_path(&join_path(folder, name), WantedKind::File)?;
    let head = search.first_bytes(&path, elf::SIZE)?;
    match ElfHeader::from_file_start(&head) {
        ElfHeader::Wide(machine) => Some(LibraryFile {
            folder: folder.to_owned(),
            path,
            name: name.to_owned(),
            machine,
        }),
        // Drivers install 32-bit libraries too. They are not offered, and that is not a problem.
        ElfHeader::Narrow => None,
        ElfHeader::Unknown => {
            search.add_problem(format!(
                "{path} is left out: it is no library for a known machine"
            ));
            None
        }
    }
}

/// Returns the main library of the driver.
fn find_main_library<'a>(libraries: &'a [LibraryFile], version: &str) -> Option<&'a LibraryFile> {
    let find = |main: &&str| {
        let name = format!("{main}{version}");
        libraries.iter().find(|library| library.name == name)
    };
    MAIN.iter().find_map(find)
}

/// Adds the links in a folder that lead to a library that was added.
fn add_folder_links(search: &mut RootSearch<'_>, shelf: &LibraryFolder) {
    let LibraryFolder { folder, listing } = shelf;
    let items = listing.items.iter();
    let names = items.filter(|(name, kind)| kind.is_symlink() && name.contains(".so"));
    let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
    let links = search.folder_links(folder, &names);
    for (name, target) in &links {
        let mut last = target;
        // A link to a file in the same folder is followed without a system call.
        for _ in 0..MOST_HOPS {
            last = links.get(last).unwrap_or(last);
        }
        let path = match last.contains('/') {
            false => Some(join_path(folder, last)),
            true => search.resolve_path(&join_path(folder, name)),
        };
        if let Some(path) = path.filter(|path| search.has_file(path)) {
            let link = FileLink {
                path: join_path(folder, name),
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
        rest.is_some_and(|rest| count_version_numbers(rest) >= *count)
    };
    OTHERS.iter().any(has_own)
}

/// Returns true if a folder is `other` or below it.
fn is_below(folder: &str, other: &str) -> bool {
    let rest = folder.strip_prefix(other);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Counts the numbers of a version; 0 if the text is not a version.
pub(super) fn count_version_numbers(version: &str) -> usize {
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
