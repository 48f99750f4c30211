//! Libraries beside the driver's own: they lead to it, or are installed with it under versions of
//! their own. NVIDIA's flag `enable-explicit-driver-libraries` names them; most images have their
//! own.

use model::FileKind;

use super::{
    elf::ElfMachine,
    libraries::{count_version_numbers, read_library},
    search::RootSearch,
    shelves::LibraryFolder,
};

const NAMES: [&str; 11] = [
    "libEGL",
    "libGL",
    "libGLESv1_CM",
    "libGLESv2",
    "libGLX",
    "libGLdispatch",
    "libOpenCL",
    "libOpenGL",
    "libnvidia-api",
    "libnvidia-egl-xcb",
    "libnvidia-egl-xlib",
];

/// Adds the companion libraries for this machine, each from the first folder that has it.
pub(super) fn add_companions(
    search: &mut RootSearch<'_>,
    shelves: &[LibraryFolder],
    machine: Option<ElfMachine>,
) {
    for stem in NAMES {
        let paths = shelves.iter().find_map(|shelf| {
            let items = shelf.listing.items.iter();
            let names = items.filter(|(name, _)| is_one(name, stem));
            let paths: Vec<String> = names
                .filter_map(|(name, _)| read_library(search, &shelf.folder, name))
                .filter(|library| machine.is_none_or(|machine| library.machine == machine))
                .map(|library| library.path)
                .collect();
            (!paths.is_empty()).then_some(paths)
        });
        for path in paths.into_iter().flatten() {
            search.add_file(path, FileKind::Companion, None);
        }
    }
}

/// Returns true if a name is that of a library, with any version or none.
fn is_one(name: &str, stem: &str) -> bool {
    let rest = name.strip_prefix(stem);
    let rest = rest.and_then(|rest| rest.strip_prefix(".so"));
    rest.is_some_and(|rest| {
        let version = rest.strip_prefix('.');
        rest.is_empty() || version.is_some_and(|version| count_version_numbers(version) > 0)
    })
}
