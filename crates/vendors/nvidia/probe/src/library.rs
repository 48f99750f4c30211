//! Where the driver's library is, and whether it is still the same file.

use std::path::{Path, PathBuf};

use host::FileIdentity;

/// The library's name for the loader.
const NAME: &str = "libnvidia-ml.so.1";

/// Where drivers put their libraries, below their root.
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

/// Where to look for the library.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    /// This file and no other.
    pub(super) file: Option<PathBuf>,
    /// Below this folder.
    pub(super) driver_path: Option<PathBuf>,
    /// Where it is not there, wherever the loader finds it.
    pub(super) or_loader: bool,
}

/// A library to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// What the loader is asked for: a path, or a name.
    pub(super) path: PathBuf,
    /// Which file it is; `None` where the loader finds it by name.
    identity: Option<FileIdentity>,
}

// === impl Search ===

impl Search {
    /// The library, or the places that were looked at.
    pub(super) fn find(&self) -> Result<Found, Vec<PathBuf>> {
        let places = match (&self.file, &self.driver_path) {
            (Some(file), _) => vec![file.clone()],
            (None, Some(root)) => FOLDERS.iter().map(|f| root.join(f).join(NAME)).collect(),
            (None, None) => {
                return Ok(Found::by_name());
            }
        };
        let found = places.iter().find_map(|path| {
            identify(path).map(|identity| Found {
                path: path.clone(),
                identity: Some(identity),
            })
        });
        match found {
            None if self.or_loader => Ok(Found::by_name()),
            found => found.ok_or(places),
        }
    }

    /// What a person can do about it.
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

// === impl Found ===

impl Found {
    /// Whatever the loader finds.
    fn by_name() -> Self {
        Self {
            path: NAME.into(),
            identity: None,
        }
    }

    /// Whether the loader finds it by its name.
    pub(super) fn is_by_name(&self) -> bool {
        self.identity.is_none()
    }

    /// Notes which file the loader took, where it was found by name; `false` where that file is
    /// gone. Call it once it is loaded. `known` is whether that file was known before.
    ///
    /// The loader gives a library that it could not unload again under its name, even if the file
    /// was removed long ago.
    pub(super) fn resolve(&mut self, known: &mut bool) -> bool {
        if self.identity.is_some() {
            return true;
        }
        let Some(path) = mapped() else {
            // A library under another name is one that cannot be followed; one that was there
            // under its own was moved away.
            return !*known;
        };
        *known = true;
        self.identity = identify(&path);
        self.path = path;
        self.identity.is_some()
    }

    /// Whether the file was replaced or removed since.
    pub(super) fn is_stale(&self) -> bool {
        self.identity.is_some() && identify(&self.path) != self.identity
    }
}

/// The identity of a regular file.
fn identify(path: &Path) -> Option<FileIdentity> {
    let meta = fs_err::metadata(path).ok().filter(|meta| meta.is_file())?;
    Some(FileIdentity::from_metadata(&meta))
}

/// The path under which the library is mapped into this process.
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

    fn below(root: &Path) -> Search {
        Search {
            driver_path: Some(root.to_owned()),
            ..Search::default()
        }
    }

    #[test]
    fn looks_in_every_folder_of_the_driver_root() {
        for folder in FOLDERS {
            let root = tempfile::tempdir().unwrap();
            let file = root.path().join(folder).join(NAME);
            fs_err::create_dir_all(file.parent().unwrap()).unwrap();
            fs_err::write(&file, "x").unwrap();
            assert_eq!(below(root.path()).find().unwrap().path, file);
        }
    }

    #[test]
    fn names_every_place_when_there_is_none() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(below(root.path()).find().unwrap_err().len(), FOLDERS.len());
        let file = root.path().join("no/such/file.so");
        let named = Search {
            file: Some(file.clone()),
            ..below(root.path())
        };
        assert_eq!(named.find().unwrap_err(), [file]);
        let lenient = Search {
            or_loader: true,
            ..below(root.path())
        };
        assert!(lenient.find().unwrap().is_by_name());
    }

    #[test]
    fn notices_a_file_that_was_replaced_or_removed() {
        let root = tempfile::tempdir().unwrap();
        let (file, newer) = (root.path().join(NAME), root.path().join("newer"));
        fs_err::write(&file, "x").unwrap();
        let found = below(root.path()).find().unwrap();
        assert!(!found.is_stale());
        fs_err::write(&newer, "y").unwrap();
        fs_err::rename(&newer, &file).unwrap();
        assert!(found.is_stale());
        let again = below(root.path()).find().unwrap();
        fs_err::remove_file(&file).unwrap();
        assert!(again.is_stale());
    }
}
