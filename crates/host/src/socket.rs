//! Unix sockets that are bound with a clear error and unlinked by the one who bound them.

use std::{
    io,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::Mode,
    net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType},
};
use tokio::net::UnixListener;

use crate::FileIdentity;

/// The longest path that fits a socket address.
pub const PATH_LIMIT: usize = 107;

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 128;

/// A listening socket and its file, which is removed when this is dropped.
#[derive(Debug)]
pub struct Bound {
    listener: UnixListener,
    file: File,
}

/// The file of a socket that we made. Dropping it removes the file if it is still ours.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    identity: FileIdentity,
}

/// Why a socket cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path does not fit a socket address.
    #[error(
        "the socket path {} has {} bytes, and the system takes at most {PATH_LIMIT}: \
         choose a folder with a shorter path",
        path.display(), path.as_os_str().len()
    )]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// Somebody listens there already.
    #[error("{} is in use by another process", path.display())]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// Something that is not a socket has the name.
    #[error("{} exists and is not a socket; remove it or choose another path", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot listen on {}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

// === impl Bound ===

impl Bound {
    /// Listens on `path`, for root alone. A socket left over by a dead process is replaced.
    ///
    /// Must be called inside a tokio runtime.
    pub fn bind(path: &Path) -> Result<Self, Error> {
        if path.as_os_str().len() > PATH_LIMIT {
            return Err(Error::TooLong {
                path: path.to_owned(),
            });
        }
        clear(path)?;
        let failed = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let listener = listen(path).map_err(failed)?;
        let identity =
            FileIdentity::of_entry(path).ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let file = File {
            path: path.to_owned(),
            identity,
        };
        Ok(Self { listener, file })
    }

    /// The two halves: what to accept from, and what to drop at the end.
    pub fn split(self) -> (UnixListener, File) {
        (self.listener, self.file)
    }
}

// === impl File ===

impl File {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file at our path is still the one we made.
    pub fn is_ours(&self) -> bool {
        FileIdentity::of_entry(&self.path) == Some(self.identity)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.is_ours() {
            let _ = fs_err::remove_file(&self.path);
        }
    }
}

/// Whether somebody accepts connections at `path`.
pub fn is_alive(path: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(path).is_ok()
}

/// A listening socket that never was anybody's but ours, not even between two calls.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Linux makes the file with the mode that the socket has when it is bound.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    net::listen(&socket, BACKLOG)?;
    UnixListener::from_std(socket.into())
}

/// Makes room for a socket: removes a dead one, refuses anything else.
fn clear(path: &Path) -> Result<(), Error> {
    let path_buf = || path.to_owned();
    let Ok(meta) = fs_err::symlink_metadata(path) else {
        return Ok(());
    };
    if !meta.file_type().is_socket() {
        return Err(Error::NotASocket { path: path_buf() });
    }
    if is_alive(path) {
        return Err(Error::InUse { path: path_buf() });
    }
    fs_err::remove_file(path).map_err(|source| Error::Io {
        path: path_buf(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt};

    use super::*;

    #[tokio::test]
    async fn removes_its_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let (_listener, file) = Bound::bind(&path).unwrap().split();
        assert!(file.is_ours());
        drop(file);
        assert!(!path.exists());

        let (_listener, file) = Bound::bind(&path).unwrap().split();
        fs_err::set_permissions(&path, PermissionsExt::from_mode(0o660)).unwrap();
        assert!(file.is_ours(), "whatever its mode");
        fs_err::remove_file(&path).unwrap();
        fs_err::write(&path, "somebody else's").unwrap();
        assert!(!file.is_ours());
        drop(file);
        assert!(path.exists());
    }

    #[tokio::test]
    async fn is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let bound = Bound::bind(&path).unwrap();
        let mode = fs_err::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(bound);
    }

    #[tokio::test]
    async fn replaces_a_dead_socket_and_refuses_a_live_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let bound = Bound::bind(&path).unwrap();
        assert!(is_alive(&path));
        let error = Bound::bind(&path).unwrap_err();
        assert!(matches!(error, Error::InUse { .. }), "{error}");
        drop(bound);
    }

    #[tokio::test]
    async fn keeps_what_is_not_a_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        fs_err::write(&path, "data").unwrap();
        let error = Bound::bind(&path).unwrap_err();
        assert!(matches!(error, Error::NotASocket { .. }), "{error}");
        assert_eq!(fs_err::read(&path).unwrap(), b"data");
    }

    #[tokio::test]
    async fn names_a_path_that_is_too_long() {
        let path = Path::new("/tmp").join("x".repeat(110));
        let error = Bound::bind(&path).unwrap_err().to_string();
        assert!(
            error.contains("115 bytes") && error.contains("107"),
            "{error}"
        );
    }
}
