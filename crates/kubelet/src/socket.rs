//! Sockets in the kubelet's folder: names that are never used twice, connections that can be cut
//! off, and the leftovers of processes that died.

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

/// What our clients send as `:authority`; no server on a unix socket looks at it.
pub(crate) const AUTHORITY: &str = "http://localhost";

const PREFIX: &str = "ostler-";
const SUFFIX: &str = ".sock";
/// The digits of a hash.
const HASH: usize = 8;

/// Makes the socket names of one process. In a folder of up to `Config::KUBELET_DIR_LIMIT` bytes
/// every resource has one.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    dir: PathBuf,
    nonce: String,
}

/// A connection that ends when it is told to, whatever its peer does.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// A folder in which no socket can have a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no socket fits into {}: the shortest path would have {length} bytes and the system takes at \
     most {PATH_LIMIT}; mount the kubelet's folder at a shorter path", dir.display()
)]
pub(crate) struct TooLong {
    dir: PathBuf,
    length: usize,
}

// === impl Names ===

impl Names {
    /// Names in `dir` that no other process and no earlier start uses.
    pub(crate) fn new(dir: &Path) -> Self {
        let nonce = RandomState::new().hash_one(std::process::id());
        Self {
            dir: dir.to_owned(),
            nonce: format!("{:08x}", nonce & 0xffff_ffff),
        }
    }

    /// The file name of the nth socket of a resource. What does not fit is shortened to a hash.
    pub(crate) fn nth(&self, resource: &ResourceName, n: u64) -> Result<String, TooLong> {
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
                return Err(TooLong {
                    dir: self.dir.clone(),
                    length: fixed + HASH,
                });
            }
        };
        Ok(format!("{PREFIX}{slug}{tail}"))
    }

    /// Removes the sockets of dead processes of our kind. Those that somebody listens on, and our
    /// own, are left alone.
    pub(crate) async fn sweep(&self) {
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

// === impl Connection ===

impl Connection {
    /// A connection that is cut off when `cut` completes.
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

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) -> Self::ConnectInfo {}
}

impl AsyncRead for Connection {
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

impl AsyncWrite for Connection {
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

/// A gRPC channel over a connection that is open already. It never reconnects.
pub(crate) async fn channel(
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

/// FNV-1a, folded to 32 bits: the same on every start and every build.
fn hash(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

async fn remove_dead(path: &Path) {
    let before = FileIdentity::of_entry(path);
    // Twice, because a process that starts now has bound its socket before it listens.
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
