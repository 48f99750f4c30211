//! Root folder that stands for `/`: paths and their symbolic links are resolved inside it and never lead
//! out of it, even if another process changes them during the lookup.

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

// This is more than any attribute in sysfs has: at most one page.
/// Size limit, in bytes, of [`HostRoot::read_trimmed`].
const TEXT_LIMIT: u64 = 1 << 20;

/// Number of times that the kernel's lookup is tried while other processes rename or mount
/// something. After that, the path is walked in user space.
const TRIES: usize = 16;

/// Folder that stands for the host's `/`, or for that of a driver container. Paths in arguments and
/// results are absolute and seen from inside.
///
/// The folder need not exist yet and may be replaced: every call starts at its path. All calls but
/// [`HostRoot::join_path`], [`HostRoot::has_path`], [`HostRoot::metadata`] and [`HostRoot::read_link`] need a mounted `/proc` of
/// the agent's PID namespace.
///
/// ```
/// let host = host::HostRoot::new("/host");
/// assert_eq!(host.join_path("/sys/bus/pci").to_str(), Some("/host/sys/bus/pci"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRoot(PathBuf);

/// Treatment of the last component of a path if it is a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastLink {
    Follow,
    Keep,
}

// === impl HostRoot ===

impl HostRoot {
    /// Makes a root of the folder at `path`, as this process sees it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Path of the folder, as this process sees it.
    pub fn root_folder(&self) -> &Path {
        &self.0
    }

    /// Joins the root and an absolute `path`, as this process sees it. For messages only: to open the
    /// result would follow absolute links out of the root.
    pub fn join_path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// True if `path` exists. A path that cannot be read counts as absent.
    pub fn has_path(&self, path: impl AsRef<Path>) -> bool {
        self.metadata(path).is_ok()
    }

    /// Reads a small text file without white space around the text; `None` if it is absent, unreadable or
    /// longer than 1 MiB. Bytes that are not UTF-8 are replaced.
    pub fn read_trimmed(&self, path: impl AsRef<Path>) -> Option<String> {
        let file = self.open_file(path).ok()?;
        let bytes = small::read_opened(&file, TEXT_LIMIT).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Resolves all links of a path. The path must exist.
    pub fn resolve_path(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        let root = self.open_root()?;
        let whole = name_of(&find_path(&root, path.as_ref(), LastLink::Follow)?)?;
        let inside = whole.strip_prefix(name_of(&root)?);
        // This fails only if the root folder was moved during the call.
        let inside = inside.map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Path::new("/").join(inside))
    }

    /// Reads the metadata of `path`, links followed.
    pub fn metadata(&self, path: impl AsRef<Path>) -> io::Result<Metadata> {
        let found = find_path(&self.open_root()?, path.as_ref(), LastLink::Follow)?;
        File::from(found).metadata()
    }

    /// Reads the target of the link at `path`.
    pub fn read_link(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        let found = find_path(&self.open_root()?, path.as_ref(), LastLink::Keep)?;
        match walk::read_target(&found) {
            // readlinkat(2) with an empty path answers ENOENT, not EINVAL, for a file that is not a link.
            Err(Errno::NOENT) => Err(Errno::INVAL.into()),
            target => Ok(target?.into()),
        }
    }

    /// Opens a regular file for reading. Other kinds of files are not opened.
    pub fn open_file(&self, path: impl AsRef<Path>) -> Result<File, small::Error> {
        let found = find_path(&self.open_root()?, path.as_ref(), LastLink::Follow)?;
        let found = File::from(found);
        if found.metadata()?.is_file() {
            small::open_regular(&own_descriptor(&found))
        } else {
            Err(small::Error::NotAFile)
        }
    }

    /// Lists the entries of a folder. Use their names and types only: their paths are below
    /// `/proc/self/fd`.
    pub fn read_dir(&self, path: impl AsRef<Path>) -> io::Result<ReadDir> {
        let found = find_path(&self.open_root()?, path.as_ref(), LastLink::Follow)?;
        std::fs::read_dir(own_descriptor(&found))
    }

    fn open_root(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(CWD, &self.0, flags, Mode::empty())?)
    }
}

impl Default for HostRoot {
    fn default() -> Self {
        Self::new("/")
    }
}

/// Finds a path below a root by the kernel's lookup, or by [`walk()`] if the kernel refuses.
fn find_path(root: &OwnedFd, path: &Path, last: LastLink) -> io::Result<OwnedFd> {
    // `openat2` exists since Linux 5.6. systemd's filter answers ENOSYS in units with `RestrictSUIDSGID=`
    // (seccomp-util.c), and the filters of container runtimes before 2021 answer EPERM.
    //
    // `components` drops a slash at the end: with it, the lookup would accept folders only.
    let path: PathBuf = Path::new("/").join(path).components().collect();
    match find_by_kernel(root, &path, last) {
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => Ok(walk(root, &path, last)?),
        found => Ok(found?),
    }
}

/// Finds a path by `openat2`. The descriptor is opened with O_PATH: it serves for stat(2), or to
/// open the file again by its name in `/proc`.
fn find_by_kernel(root: &OwnedFd, path: &Path, last: LastLink) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::CLOEXEC | last.open_flags();
    let mut found = Err(Errno::AGAIN);
    for _ in 0..TRIES {
        // EAGAIN: another process renamed or mounted something, anywhere, so the kernel cannot be sure
        // that `..` stayed inside the root (openat2(2), RESOLVE_IN_ROOT).
        found = openat2(root, path, flags, Mode::empty(), resolve);
        if !matches!(found, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    found
}

/// Path in `/proc` by which an open file can be opened again with other flags.
fn own_descriptor(file: &impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()).into()
}

/// Path of an open file without links, as this process sees it.
fn name_of(file: &OwnedFd) -> io::Result<PathBuf> {
    std::fs::read_link(own_descriptor(file))
}

// === impl LastLink ===

impl LastLink {
    fn open_flags(self) -> OFlags {
        match self {
            Self::Follow => OFlags::empty(),
            Self::Keep => OFlags::NOFOLLOW,
        }
    }
}

#[cfg(test)]
mod tests;
