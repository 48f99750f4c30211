//! Sockets in the kubelet's folder: unique names, connections that can be cut off, and removal of
//! the sockets of dead processes.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use host::{FileIdentity, socket::PATH_LIMIT};
use hyper_util::rt::TokioIo;
use model::ResourceName;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::UnixStream,
    time::{sleep, timeout},
};
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::transport::{Channel, Endpoint, server::Connected};

/// Value of `:authority` that our clients send. The kubelet's servers on unix sockets ignore it.
pub(crate) const AUTHORITY: &str = "http://localhost";

const PREFIX: &str = "ostler-";
const SUFFIX: &str = ".sock";
/// Length of a hash in hexadecimal digits.
const HASH: usize = 8;

// A name is used once, by one registration: the kubelet 1.37 refuses a socket path that it is still
// connected to (kubernetes PR 135437), and an older agent's socket must not be replaced under it.
/// Socket names of one process. In a folder with a path of up to `Config::KUBELET_DIR_LIMIT` bytes
/// every resource has a name within the length limit.
#[derive(Clone, Debug)]
pub(crate) struct SocketNames {
    dir: PathBuf,
    nonce: String,
}

/// A server connection that our side can end, even if the peer does not answer.
#[derive(Debug)]
pub(crate) struct CuttableConnection {
    stream: UnixStream,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// Error for a folder whose path is too long for any socket in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no socket fits into {}: the shortest path would have {length} bytes and the system takes at \
     most {PATH_LIMIT}; mount the kubelet's folder at a shorter path", dir.display()
)]
pub(crate) struct SocketPathTooLong {
    dir: PathBuf,
    length: usize,
}

// === impl SocketNames ===

impl SocketNames {
    /// Makes names in `dir` that no other process and no earlier start uses.
    pub(crate) fn new(dir: &Path) -> Self {
        // A pid alone is not unique: each agent in a pod can be pid 1. `RandomState` has random keys
        // in each process.
        let nonce = RandomState::new().hash_one(std::process::id());
        Self {
            dir: dir.to_owned(),
            nonce: format!("{:08x}", nonce & 0xffff_ffff),
        }
    }

    /// Makes the file name of the nth socket of a resource. A resource name that is too long is cut,
    /// and a hash of the whole name is added.
    ///
    /// # Errors
    /// Not even the hash fits into the length limit of a socket path.
    pub(crate) fn nth(&self, resource: &ResourceName, n: u64) -> Result<String, SocketPathTooLong> {
        let tail = format!("-{}-{n}{SUFFIX}", self.nonce);
        let fixed = self.dir.as_os_str().len() + 1 + PREFIX.len() + tail.len();
        let slug = resource.as_str().replace('/', "_");
        let room = PATH_LIMIT.saturating_sub(fixed);
        let slug = match room {
            room if room >= slug.len() => slug,
            room if room > HASH => {
                format!("{}-{}", &slug[..room - HASH - 1], hash(resource.as_str()))
            }
            HASH => hash(resource.as_str()),
            _ => {
                return Err(SocketPathTooLong {
                    dir: self.dir.clone(),
                    length: fixed + HASH,
                });
            }
        };
        Ok(format!("{PREFIX}{slug}{tail}"))
    }

    /// Removes the sockets of dead agents. Sockets of live processes, and our own, stay.
    pub(crate) async fn remove_dead_sockets(&self) {
        let own = format!("-{}-", self.nonce);
        let Ok(entries) = fs_err::read_dir(&self.dir) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let kind = entry.file_type();
            let ours = name.starts_with(PREFIX) && name.ends_with(SUFFIX);
            if ours && !name.contains(&own) && kind.is_ok_and(|kind| kind.is_socket()) {
                remove_dead(&entry.path()).await;
            }
        }
    }
}

// === impl CuttableConnection ===

impl CuttableConnection {
    /// Makes a connection that is cut off when `cut` completes.
    pub(crate) fn new(stream: UnixStream, cut: WaitForCancellationFutureOwned) -> Self {
        Self {
            stream,
            cut: Box::pin(cut),
        }
    }

    fn poll_cut(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        ready!(self.cut.as_mut().poll(cx));
        Poll::Ready(io::ErrorKind::ConnectionAborted.into())
    }
}

impl Connected for CuttableConnection {
    type ConnectInfo = ();

    fn connect_info(&self) -> Self::ConnectInfo {}
}

impl AsyncRead for CuttableConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(error) = self.poll_cut(cx) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for CuttableConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(error) = self.poll_cut(cx) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Makes a gRPC channel over an open connection. It never reconnects: a kubelet that restarted must
/// be noticed, and not be called under the old registration.
pub(crate) async fn connect_channel(
    endpoint: Endpoint,
    stream: UnixStream,
) -> Result<Channel, tonic::transport::Error> {
    let mut stream = Some(stream);
    let connector = tower::service_fn(move |_| {
        let stream = stream.take().map(TokioIo::new);
        std::future::ready(stream.ok_or(io::Error::from(io::ErrorKind::NotConnected)))
    });
    endpoint.connect_with_connector(connector).await
}

/// Hash of a text (FNV-1a, folded to 32 bits) in 8 hexadecimal digits.
fn hash(text: &str) -> String {
    // The hashers of the standard library may differ between builds; this one does not.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

async fn remove_dead(path: &Path) {
    let before = FileIdentity::of_entry(path);
    // Two attempts, because a process that starts now binds its socket before it listens, and
    // refuses connections in between.
    if !is_dead(path).await {
        return;
    }
    sleep(Duration::from_millis(50)).await;
    if is_dead(path).await && FileIdentity::of_entry(path) == before {
        match fs_err::remove_file(path) {
            Ok(()) => {
                tracing::info!(path = %path.display(), "removed the socket of a dead process")
            }
            Err(error) => tracing::warn!(%error, "cannot remove the socket of a dead process"),
        }
    }
}

async fn is_dead(path: &Path) -> bool {
    let attempt = timeout(Duration::from_secs(1), UnixStream::connect(path)).await;
    matches!(attempt, Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests;
