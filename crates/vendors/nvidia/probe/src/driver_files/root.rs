//! The driver's folder as if it were `/`. Only paths that can be written into a spec come out of
//! it.

use std::{
    fs::{FileType, Metadata},
    io::{self, Read as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use host::small;
use rustix::io::Errno;

use super::elf;

/// Maximum number of names that are read from a folder.
pub(super) const MOST_NAMES: usize = 65_536;

/// Folder that stands for `/`. All paths are absolute and seen from inside; links cannot lead out.
#[derive(Clone, Debug)]
pub(super) struct DriverRoot(host::HostRoot);

/// Names in a folder.
#[derive(Debug, Default)]
pub(super) struct FolderListing {
    /// Names and file types, sorted.
    pub(super) items: Vec<(String, FileType)>,
    /// Names that cannot be written into a spec, converted for display.
    pub(super) odd: Vec<String>,
    /// True if the folder has more than `MOST_NAMES` names.
    pub(super) cut: bool,
}

/// Failure to look up a path.
#[derive(Debug, thiserror::Error)]
pub(super) enum PathFailure {
    /// The path does not exist.
    #[error("there is nothing")]
    Missing,
    /// The path has a loop of links.
    #[error("its links do not end")]
    Endless,
    /// A link's target, or the resolved path, is not printable UTF-8.
    #[error("it leads to a name that cannot be written down")]
    Unprintable,
    /// The system call failed.
    #[error("{}", .0.kind())]
    Io(io::Error),
}

// === impl DriverRoot ===

impl DriverRoot {
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self(host::HostRoot::new(path))
    }

    /// Returns the path of the folder, as this process sees it.
    pub(super) fn root_folder(&self) -> &Path {
        self.0.root_folder()
    }

    /// Converts a path seen from inside to the path that this process sees, for messages.
    pub(super) fn display_path(&self, path: &str) -> PathBuf {
        self.0.join_path(path.trim_start_matches('/'))
    }

    /// Resolves all links of a path. The result is seen from inside too.
    pub(super) fn resolve_links(&self, path: &str) -> Result<String, PathFailure> {
        printable_text(&self.0.resolve_path(path)?).ok_or(PathFailure::Unprintable)
    }

    /// Returns the metadata of the file that a path leads to.
    pub(super) fn read_metadata(&self, path: &str) -> Result<Metadata, PathFailure> {
        Ok(self.0.metadata(path)?)
    }

    /// Returns the target of a link; `None` if the path is not a link.
    pub(super) fn read_link_target(&self, path: &str) -> Option<String> {
        printable_text(&self.0.read_link(path).ok()?)
    }

    /// Lists a folder.
    pub(super) fn list_root_folder(&self, folder: &str) -> Result<FolderListing, PathFailure> {
        let mut listing = FolderListing::default();
        for (count, entry) in self.0.read_dir(folder)?.enumerate() {
            if count == MOST_NAMES {
                listing.cut = true;
                break;
            }
            let entry = entry?;
            let name = entry.file_name();
            match printable_text(Path::new(&name)) {
                Some(name) => listing.items.push((name, entry.file_type()?)),
                None => listing.odd.push(name.to_string_lossy().into_owned()),
            }
        }
        listing.items.sort_by(|one, two| one.0.cmp(&two.0));
        listing.odd.sort();
        Ok(listing)
    }

    /// Reads at most `most` bytes from the start of a regular file.
    pub(super) fn read_head(&self, path: &str, most: u64) -> Result<Vec<u8>, PathFailure> {
        let mut bytes = Vec::new();
        self.0.open_file(path)?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the soname of a library.
    pub(super) fn read_soname(&self, path: &str) -> Option<String> {
        let file = self.0.open_file(path).ok()?;
        elf::parse_soname(|at, most| {
            let mut bytes = vec![0; most];
            let read = file.read_at(&mut bytes, at).ok()?;
            bytes.truncate(read);
            Some(bytes)
        })
    }
}

// === impl PathFailure ===

impl From<io::Error> for PathFailure {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::NOTDIR) => Self::Missing,
            Some(Errno::LOOP) => Self::Endless,
            _ => Self::Io(error),
        }
    }
}

impl From<small::Error> for PathFailure {
    fn from(error: small::Error) -> Self {
        match error {
            small::Error::Io(error) => error.into(),
            other => Self::Io(io::Error::new(io::ErrorKind::InvalidInput, other)),
        }
    }
}

/// Returns a name or path as a text; `None` if it is not UTF-8 or has control characters.
fn printable_text(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    (!text.chars().any(char::is_control)).then(|| text.to_owned())
}
