//! Unix sockets with clear errors at bind, whose files are removed by the process that made them.

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

// `sun_path` has 108 bytes, and the last one is zero (unix(7)).
/// Limit for the length of a socket's path, in bytes.
pub const PATH_LIMIT: usize = 107;

/// Number of connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// A listening socket with its file. A drop closes the socket and removes the file.
#[derive(Debug)]
pub struct BoundSocket {
    listener: UnixListener,
    file: SocketFile,
}

/// File of a socket that this process made. A drop removes the file if it was not replaced.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: FileIdentity,
}

/// Error of [`BoundSocket::bind_path`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path is longer than [`PATH_LIMIT`].
    #[error(
        "the socket path {} has {} bytes, and the system takes at most {PATH_LIMIT}: \
         choose a folder with a shorter path",
        path.display(), path.as_os_str().len()
    )]
    TooLong {
        /// Path of the socket.
        path: PathBuf,
    },
    /// Another process listens on the path.
    #[error("{} is in use by another process", path.display())]
    InUse {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The path is that of a file which is not a socket.
    #[error("{} exists and is not a socket; remove it or choose another path", path.display())]
    NotASocket {
        /// Path of the file.
        path: PathBuf,
    },
    /// A system call failed.
    #[error("cannot listen on {}: {source}", path.display())]
    Io {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
}

// === impl BoundSocket ===

impl BoundSocket {
    /// Listens on `path` with mode 0600, so that only root and the owner can connect. The socket of a
    /// dead process is replaced. The call must be made inside a tokio runtime.
    ///
    /// # Errors
    /// The path is too long, another process listens on it, or it is not a socket.
    pub fn bind_path(path: &Path) -> Result<Self, Error> {
        if path.as_os_str().len() > PATH_LIMIT {
            return Err(Error::TooLong {
                path: path.to_owned(),
            });
        }
        clear_path(path)?;
        let failed = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let listener = listen_private(path).map_err(failed)?;
        let identity =
            FileIdentity::of_entry(path).ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let file = SocketFile {
            path: path.to_owned(),
            identity,
        };
        Ok(Self { listener, file })
    }

    /// Splits into the listener, and the file to drop at the end.
    pub fn into_parts(self) -> (UnixListener, SocketFile) {
        (self.listener, self.file)
    }
}

// === impl SocketFile ===

impl SocketFile {
    /// Path of the file.
    pub fn socket_path(&self) -> &Path {
        &self.path
    }

    /// True if the file at the path is still the one that this process made.
    pub fn is_ours(&self) -> bool {
        FileIdentity::of_entry(&self.path) == Some(self.identity)
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.is_ours() {
            let _ = fs_err::remove_file(&self.path);
        }
    }
}

/// True if a process accepts connections at `path`. The call blocks while its queue is full.
pub fn is_alive(path: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(path).is_ok()
}

/// Makes a listening socket with mode 0600.
fn listen_private(path: &Path) -> io::Result<UnixListener> {
    // The mode must be right from the first moment: a chmod after bind(2) would leave a time in which
    // other users can connect.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Linux gives the file the mode of the socket's inode, minus the umask (net/unix/af_unix.c,
    // `unix_bind_bsd`).
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    net::listen(&socket, BACKLOG)?;
    UnixListener::from_std(socket.into())
}

/// Removes the socket of a dead process; everything else at the path is an error.
fn clear_path(path: &Path) -> Result<(), Error> {
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
        let (_listener, file) = BoundSocket::bind_path(&path).unwrap().into_parts();
        assert!(file.is_ours());
        drop(file);
        assert!(!path.exists());

        let (_listener, file) = BoundSocket::bind_path(&path).unwrap().into_parts();
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
        let bound = BoundSocket::bind_path(&path).unwrap();
        let mode = fs_err::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(bound);
    }

    #[tokio::test]
    async fn replaces_a_dead_socket_and_refuses_a_live_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let bound = BoundSocket::bind_path(&path).unwrap();
        assert!(is_alive(&path));
        let error = BoundSocket::bind_path(&path).unwrap_err();
        assert!(matches!(error, Error::InUse { .. }), "{error}");
        drop(bound);
    }

    #[tokio::test]
    async fn keeps_what_is_not_a_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        fs_err::write(&path, "data").unwrap();
        let error = BoundSocket::bind_path(&path).unwrap_err();
        assert!(matches!(error, Error::NotASocket { .. }), "{error}");
        assert_eq!(fs_err::read(&path).unwrap(), b"data");
    }

    #[tokio::test]
    async fn names_a_path_that_is_too_long() {
        let path = Path::new("/tmp").join("x".repeat(110));
        let error = BoundSocket::bind_path(&path).unwrap_err().to_string();
        assert!(
            error.contains("115 bytes") && error.contains("107"),
            "{error}"
        );
    }
}
