//! Location of NVML's library, and the check that its file is still the same.

use std::path::{Path, PathBuf};

use host::FileIdentity;

/// Name by which the loader finds the library.
const NAME: &str = "libnvidia-ml.so.1";

/// Folders of the library below the driver's root. NVIDIA's device plugin searches six of them; the
/// others are those of Debian, NixOS, WSL and driver containers.
const FOLDERS: [&str; 14] = [
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "lib64",
    "lib",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "usr/lib/x86_64-linux-gnu/nvidia/current",
    "usr/lib/aarch64-linux-gnu/nvidia/current",
    "usr/local/nvidia/lib64",
    "usr/lib/wsl/lib",
    "run/opengl-driver/lib",
    "",
];

/// Places to search for the library.
#[derive(Clone, Debug, Default)]
pub(super) struct LibrarySearch {
    /// This file only, if set.
    pub(super) file: Option<PathBuf>,
    /// Root folder of the driver's files.
    pub(super) driver_path: Option<PathBuf>,
    /// Falls back to the loader's search if the places above do not have it.
    pub(super) or_loader: bool,
}

/// Library to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DriverLibrary {
    /// Argument for `dlopen`: a path, or a name.
    pub(super) path: PathBuf,
    /// Identity of the file; `None` if the loader finds it by name.
    identity: Option<FileIdentity>,
}

// === impl LibrarySearch ===

impl LibrarySearch {
    /// Finds the library.
    ///
    /// # Errors
    /// The places that were searched, if none of them has it.
    pub(super) fn find_library(&self) -> Result<DriverLibrary, Vec<PathBuf>> {
        let places = match (&self.file, &self.driver_path) {
            (Some(file), _) => vec![file.clone()],
            (None, Some(root)) => FOLDERS.iter().map(|f| root.join(f).join(NAME)).collect(),
            (None, None) => {
                return Ok(DriverLibrary::by_name());
            }
        };
        let found = places.iter().find_map(|path| {
            regular_file_identity(path).map(|identity| DriverLibrary {
                path: path.clone(),
                identity: Some(identity),
            })
        });
        match found {
            None if self.or_loader => Ok(DriverLibrary::by_name()),
            found => found.ok_or(places),
        }
    }

    /// Returns the advice for an operator whose library was not found.
    pub(super) fn remedy(&self) -> &'static str {
        match (&self.file, &self.driver_path) {
            (Some(_), _) => "check --nvml-library, or install the driver there",
            (None, Some(_)) => {
                "install the NVIDIA driver, or mount its files and name their folder with \
                 --driver-path"
            }
            (None, None) => {
                "install the NVIDIA driver, or name the folder of its files with --driver-path \
                 (or the library with --nvml-library)"
            }
        }
    }
}

// === impl DriverLibrary ===

impl DriverLibrary {
    /// Returns the library that the loader finds by name.
    fn by_name() -> Self {
        Self {
            path: NAME.into(),
            identity: None,
        }
    }

    /// Returns true if the loader finds the library by its name.
    pub(super) fn is_by_name(&self) -> bool {
        self.identity.is_none()
    }

    /// Notes which file the loader took for a name; `false` if that file is gone. Call it after
    /// `dlopen`. `known` is true if that file was noted before, and is set here.
    pub(super) fn resolve_loaded(&mut self, known: &mut bool) -> bool {
        if self.identity.is_some() {
            return true;
        }
        let Some(path) = mapped() else {
            // A library that is mapped under another name cannot be followed. One that was mapped
            // under its own name before was moved away.
            return !*known;
        };
        *known = true;
        self.identity = regular_file_identity(&path);
        self.path = path;
        self.identity.is_some()
    }

    /// Returns true if the file was replaced or removed since.
    pub(super) fn is_stale(&self) -> bool {
        self.identity.is_some() && regular_file_identity(&self.path) != self.identity
    }
}

/// Returns the identity of a regular file.
fn regular_file_identity(path: &Path) -> Option<FileIdentity> {
    let meta = fs_err::metadata(path).ok().filter(|meta| meta.is_file())?;
    Some(FileIdentity::from_metadata(&meta))
}

/// Returns the path under which the library is mapped into this process. The kernel appends `
/// (deleted)` in `/proc/self/maps` once the file is gone.
fn mapped() -> Option<PathBuf> {
    let maps = fs_err::read_to_string("/proc/self/maps").ok()?;
    maps.lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .find(|path| path.contains("/libnvidia-ml.so"))
        .map(|path| PathBuf::from(path.trim_end_matches(" (deleted)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(root: &Path) -> LibrarySearch {
        LibrarySearch {
            driver_path: Some(root.to_owned()),
            ..LibrarySearch::default()
        }
    }

    #[test]
    fn looks_in_every_folder_of_the_driver_root() {
        for folder in FOLDERS {
            let root = tempfile::tempdir().unwrap();
            let file = root.path().join(folder).join(NAME);
            fs_err::create_dir_all(file.parent().unwrap()).unwrap();
            fs_err::write(&file, "x").unwrap();
            assert_eq!(below(root.path()).find_library().unwrap().path, file);
        }
    }

    #[test]
    fn names_every_place_when_there_is_none() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(
            below(root.path()).find_library().unwrap_err().len(),
            FOLDERS.len()
        );
        let file = root.path().join("no/such/file.so");
        let named = LibrarySearch {
            file: Some(file.clone()),
            ..below(root.path())
        };
        assert_eq!(named.find_library().unwrap_err(), [file]);
        let lenient = LibrarySearch {
            or_loader: true,
            ..below(root.path())
        };
        assert!(lenient.find_library().unwrap().is_by_name());
    }

    #[test]
    fn notices_a_file_that_was_replaced_or_removed() {
        let root = tempfile::tempdir().unwrap();
        let (file, newer) = (root.path().join(NAME), root.path().join("newer"));
        fs_err::write(&file, "x").unwrap();
        let found = below(root.path()).find_library().unwrap();
        assert!(!found.is_stale());
        fs_err::write(&newer, "y").unwrap();
        fs_err::rename(&newer, &file).unwrap();
        assert!(found.is_stale());
        let again = below(root.path()).find_library().unwrap();
        fs_err::remove_file(&file).unwrap();
        assert!(again.is_stale());
    }
}
