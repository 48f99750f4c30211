//! Modules of the X server.

use model::FileKind;

use super::{
    libraries::read_library,
    search::{RootSearch, join_path},
    shelves::LibraryFolder,
};

/// Folders of the X server's modules: below a library folder, and fixed ones.
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

/// Adds the X server's modules. Returns the folders that have them.
pub(super) fn add_xorg_modules(
    search: &mut RootSearch<'_>,
    main: Option<String>,
    version: &str,
) -> Vec<LibraryFolder> {
    let below = main
        .into_iter()
        .flat_map(|folder| XORG_BELOW.map(|at| join_path(&folder, at)));
    let folders: Vec<String> = below.chain(XORG.map(str::to_owned)).collect();
    let mut shelves = Vec::new();
    for name in [
        "nvidia_drv.so".to_owned(),
        format!("libglxserver_nvidia.so.{version}"),
    ] {
        let found = folders.iter().find_map(|folder| {
            let folder = search.find_folder(folder)?;
            read_library(search, &folder, &name)
        });
        if let Some(library) = found {
            let listing = search.list_folder(&library.folder);
            search.add_file(library.path, FileKind::Library, None);
            shelves.push(LibraryFolder {
                folder: library.folder,
                listing,
            });
        }
    }
    shelves
}
