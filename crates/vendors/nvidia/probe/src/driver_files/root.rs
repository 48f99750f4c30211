//! The driver's folder as if it were `/`, and what of it can be written down.

use std::{
    fs::{FileType, Metadata},
    io::{self, Read as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use host::small;
use rustix::io::Errno;

use super::elf;

/// The most names that are read of a folder.
pub(super) const MOST_NAMES: usize = 65_536;

/// A folder that stands for `/`. Its paths are absolute and seen from inside.
#[derive(Clone, Debug)]
pub(super) struct Root(host::Root);

/// What is in a folder.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Names and what they are, in the order of the alphabet.
    pub(super) items: Vec<(String, FileType)>,
    /// Names that cannot be written down, as a person can read them.
    pub(super) odd: Vec<String>,
    /// Whether there is more than is read.
    pub(super) cut: bool,
}

/// Why a path leads nowhere.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// There is nothing.
    #[error("there is nothing")]
    Missing,
    /// Its links have no end.
    #[error("its links do not end")]
    Endless,
    /// A link's target, or what it leads to, cannot be written down.
    #[error("it leads to a name that cannot be written down")]
    Odd,
    /// The system refused.
    #[error("{}", .0.kind())]
    Io(io::Error),
}

// === impl Root ===

impl Root {
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self(host::Root::new(path))
    }

    /// The folder itself, as this process sees it.
    pub(super) fn folder(&self) -> &Path {
        self.0.folder()
    }

    /// The place of an absolute path, for a person to read.
    pub(super) fn place(&self, path: &str) -> PathBuf {
        self.0.path(path.trim_start_matches('/'))
    }

    /// The path without any link, seen from inside.
    pub(super) fn resolve(&self, path: &str) -> Result<String, Failure> {
        text(&self.0.resolve(path)?).ok_or(Failure::Odd)
    }

    /// Facts about what a path leads to.
    pub(super) fn metadata(&self, path: &str) -> Result<Metadata, Failure> {
        Ok(self.0.metadata(path)?)
    }

    /// What a link says.
    pub(super) fn target(&self, path: &str) -> Option<String> {
        text(&self.0.read_link(path).ok()?)
    }

    /// What is in a folder.
    pub(super) fn list(&self, folder: &str) -> Result<Listing, Failure> {
        let mut listing = Listing::default();
        for (count, entry) in self.0.read_dir(folder)?.enumerate() {
            if count == MOST_NAMES {
                listing.cut = true;
                break;
            }
            let entry = entry?;
            let name = entry.file_name();
            match text(Path::new(&name)) {
                Some(name) => listing.items.push((name, entry.file_type()?)),
                None => listing.odd.push(name.to_string_lossy().into_owned()),
            }
        }
        listing.items.sort_by(|one, two| one.0.cmp(&two.0));
        listing.odd.sort();
        Ok(listing)
    }

    /// The first bytes of a regular file.
    pub(super) fn head(&self, path: &str, most: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        self.0.open_file(path)?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The name that a library gives itself.
    pub(super) fn soname(&self, path: &str) -> Option<String> {
        let file = self.0.open_file(path).ok()?;
        elf::soname(|at, most| {
            let mut bytes = vec![0; most];
            let read = file.read_at(&mut bytes, at).ok()?;
            bytes.truncate(read);
            Some(bytes)
        })
    }
}

// === impl Failure ===

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::NOTDIR) => Self::Missing,
            Some(Errno::LOOP) => Self::Endless,
            _ => Self::Io(error),
        }
    }
}

impl From<small::Error> for Failure {
    fn from(error: small::Error) -> Self {
        match error {
            small::Error::Io(error) => error.into(),
            other => Self::Io(io::Error::new(io::ErrorKind::InvalidInput, other)),
        }
    }
}

/// A name or path that can be written into a spec and shown to a person.
fn text(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    (!text.chars().any(char::is_control)).then(|| text.to_owned())
}
