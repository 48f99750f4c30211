//! A folder that stands for `/`: paths and the links on their way are followed inside it and never
//! lead out of it, whoever changes them meanwhile.

mod walk;

use std::{
    fs::{File, Metadata, ReadDir},
    io,
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2},
    io::Errno,
};

use self::walk::walk;
use crate::small;

/// The most bytes of a [`Root::text`]; files of the kernel have at most a page for each value.
const TEXT_LIMIT: u64 = 1 << 20;

/// The most tries of a lookup that others disturb by renames and mounts; then it is done by hand.
const TRIES: usize = 16;

/// A folder that stands for the host's `/`, or for that of a driver's container. The paths that it
/// takes and gives are absolute and seen from inside.
///
/// It need not exist yet and may be replaced: every call begins at its path. All but
/// [`Root::path`], [`Root::has`], [`Root::metadata`] and [`Root::read_link`] need the agent's own
/// `/proc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

/// The last part of a path where it is a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastLink {
    Follow,
    Keep,
}

// === impl Root ===

impl Root {
    /// The folder at `path`, as this process sees it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder, as this process sees it.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The place of an absolute `path` as this process would write it. For messages: whoever opens
    /// it follows absolute links out of the root.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Says whether there is something at `path`. Unreadable counts as absent.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.metadata(path).is_ok()
    }

    /// A small text file, trimmed; `None` where it is absent, unreadable or longer than 1 MiB.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let file = self.open_file(path).ok()?;
        let bytes = small::read_opened(&file, TEXT_LIMIT).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The path without any link.
    pub fn resolve(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        let root = self.open()?;
        let whole = name_of(&find(&root, path.as_ref(), LastLink::Follow)?)?;
        let inside = whole.strip_prefix(name_of(&root)?);
        // Only if the root itself was moved meanwhile.
        let inside = inside.map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Path::new("/").join(inside))
    }

    /// Facts about what `path` leads to.
    pub fn metadata(&self, path: impl AsRef<Path>) -> io::Result<Metadata> {
        let found = find(&self.open()?, path.as_ref(), LastLink::Follow)?;
        File::from(found).metadata()
    }

    /// The text of the link at `path`.
    pub fn read_link(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        let found = find(&self.open()?, path.as_ref(), LastLink::Keep)?;
        match walk::target(&found) {
            // The kernel's word for no link, where the path is empty.
            Err(Errno::NOENT) => Err(Errno::INVAL.into()),
            target => Ok(target?.into()),
        }
    }

    /// Opens a regular file for reading. Anything else is refused without being opened.
    pub fn open_file(&self, path: impl AsRef<Path>) -> Result<File, small::Error> {
        let found = find(&self.open()?, path.as_ref(), LastLink::Follow)?;
        let found = File::from(found);
        if found.metadata()?.is_file() {
            small::open_regular(&own_descriptor(&found))
        } else {
            Err(small::Error::NotAFile)
        }
    }

    /// The entries of a folder. Their paths are of no use, their names and types are.
    pub fn read_dir(&self, path: impl AsRef<Path>) -> io::Result<ReadDir> {
        let found = find(&self.open()?, path.as_ref(), LastLink::Follow)?;
        std::fs::read_dir(own_descriptor(&found))
    }

    fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(CWD, &self.0, flags, Mode::empty())?)
    }
}

impl Default for Root {
    fn default() -> Self {
        Self::new("/")
    }
}

/// Finds a path below a root by the kernel's own lookup, or by hand where that cannot be had:
/// `openat2` came with Linux 5.6; systemd answers ENOSYS to it in units with `RestrictSUIDSGID=`
/// (`seccomp-util.c`), and container runtimes before 2021 EPERM.
fn find(root: &OwnedFd, path: &Path, last: LastLink) -> io::Result<OwnedFd> {
    // Without a slash at its end, which would ask for a folder.
    let path: PathBuf = Path::new("/").join(path).components().collect();
    match find_by_kernel(root, &path, last) {
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => Ok(walk(root, &path, last)?),
        found => Ok(found?),
    }
}

/// The descriptor is only good for a look, and for being opened by its name in `/proc`.
fn find_by_kernel(root: &OwnedFd, path: &Path, last: LastLink) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::CLOEXEC | last.flags();
    let mut found = Err(Errno::AGAIN);
    for _ in 0..TRIES {
        // `..` is not certain while somebody renames or mounts anything anywhere: openat2(2).
        found = openat2(root, path, flags, Mode::empty(), resolve);
        if !matches!(found, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    found
}

/// The path by which an open file is opened again, another way.
fn own_descriptor(file: &impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()).into()
}

/// The path of an open file, as this process sees it, without links.
fn name_of(file: &OwnedFd) -> io::Result<PathBuf> {
    std::fs::read_link(own_descriptor(file))
}

// === impl LastLink ===

impl LastLink {
    fn flags(self) -> OFlags {
        match self {
            Self::Follow => OFlags::empty(),
            Self::Keep => OFlags::NOFOLLOW,
        }
    }
}

#[cfg(test)]
mod tests;
