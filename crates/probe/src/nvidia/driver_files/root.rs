//! The driver's folder as if it were `/`: links are followed inside it and never out of it.

use std::{
    fs::FileType,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use fs_err::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use rustix::fs::OFlags;

use super::elf;

/// The most links that are followed for one path, as in the kernel.
const MOST_LINKS: usize = 40;

/// The most parts that a path may have, those of its links included.
const MOST_PARTS: usize = 512;

/// The most names that are read of a folder.
pub(super) const MOST_NAMES: usize = 65_536;

/// A folder that stands for `/`. Its paths are absolute and seen from inside.
#[derive(Clone, Debug)]
pub(super) struct Root(PathBuf);

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
        Self(path.into())
    }

    /// The folder itself, as this process sees it.
    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// Where an absolute path is for us; its links are not followed here.
    pub(super) fn place(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// The path without any link, seen from inside. An absolute target starts at the root again,
    /// and nothing is above the root.
    pub(super) fn resolve(&self, path: &str) -> Result<String, Failure> {
        let mut ahead: Vec<String> = parts(path);
        let mut done = String::new();
        let (mut links, mut steps) = (0, 0);
        while let Some(part) = ahead.pop() {
            steps += 1;
            if steps > MOST_PARTS {
                return Err(Failure::Endless);
            }
            if part == ".." {
                done.truncate(done.rfind('/').unwrap_or(0));
                continue;
            }
            let next = format!("{done}/{part}");
            let place = self.place(&next);
            if !fs_err::symlink_metadata(&place)?.is_symlink() {
                done = next;
                continue;
            }
            links += 1;
            if links > MOST_LINKS {
                return Err(Failure::Endless);
            }
            let target = text(&fs_err::read_link(&place)?).ok_or(Failure::Odd)?;
            if target.starts_with('/') {
                done.clear();
            }
            ahead.extend(parts(&target));
        }
        Ok(if done.is_empty() {
            "/".to_owned()
        } else {
            done
        })
    }

    /// What a path that has no links is.
    pub(super) fn kind(&self, path: &str) -> Result<std::fs::Metadata, Failure> {
        Ok(fs_err::symlink_metadata(self.place(path))?)
    }

    /// What a link says.
    pub(super) fn target(&self, path: &str) -> Option<String> {
        text(&fs_err::read_link(self.place(path)).ok()?)
    }

    /// What is in a folder whose path has no links.
    pub(super) fn list(&self, folder: &str) -> Result<Listing, Failure> {
        let mut listing = Listing::default();
        for (count, entry) in fs_err::read_dir(self.place(folder))?.enumerate() {
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

    /// The first bytes of a file whose path has no links.
    pub(super) fn head(&self, path: &str, most: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        self.open(path)?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The name that a library gives itself, whose path has no links.
    pub(super) fn soname(&self, path: &str) -> Option<String> {
        let file = self.open(path).ok()?;
        elf::soname(|at, most| {
            let mut bytes = vec![0; most];
            let read = file.read_at(&mut bytes, at).ok()?;
            bytes.truncate(read);
            Some(bytes)
        })
    }

    /// Opens a file whose path has no links. Whatever came into its place meanwhile is not waited for.
    fn open(&self, path: &str) -> Result<fs_err::File, Failure> {
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut options = fs_err::OpenOptions::new();
        options.read(true).custom_flags(flags.bits().cast_signed());
        Ok(options.open(self.place(path))?)
    }
}

// === impl Failure ===

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            _ => Self::Io(error),
        }
    }
}

/// A name or path that can be written into a spec and shown to a person.
fn text(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    (!text.chars().any(char::is_control)).then(|| text.to_owned())
}

/// The parts of a path that mean something, the last one first.
fn parts(path: &str) -> Vec<String> {
    let parts = path.split('/').rev();
    let parts = parts.filter(|part| !part.is_empty() && *part != ".");
    parts.map(str::to_owned).collect()
}
