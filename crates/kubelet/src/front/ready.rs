//! What comes before a registration: a list that fits, a kubelet that accepts connections, our
//! turn, and a server under a name of its own.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use api::Phase;
use host::{FileIdentity, socket::Bound};
use kubelet_api::KUBELET_SOCKET;
use tokio::{
    net::UnixStream,
    time::{sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    plugin::{Memory, Plugin},
    server::Server,
    service::Shared,
    wait::{changed, until},
};
use crate::socket::TooLong;

/// The first pause after a kubelet.sock that does not accept: it is bound before it listens.
const KNOCK: Duration = Duration::from_millis(5);
/// From this pause on it is worth telling a person.
const TELL: Duration = Duration::from_millis(100);

/// A server that is up, and a kubelet to tell it to.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) server: Server,
    pub(crate) name: String,
    pub(crate) kubelet: UnixStream,
    pub(crate) path: PathBuf,
    pub(crate) identity: FileIdentity,
}

/// Why there is nothing to register with or on.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    TooLong(#[from] TooLong),
    #[error("{} does not accept connections: {source}", path.display())]
    Connect { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Bind(#[from] host::socket::Error),
}

// === impl Plugin ===

impl Plugin {
    /// Waits for a kubelet and for its turn, and starts a server.
    pub(crate) async fn ready(&self, memory: &mut Memory) -> Ready {
        let mut knock = KNOCK;
        loop {
            self.fits().await;
            let identity = self.kubelet().await;
            if memory.tried.replace(identity) != Some(identity) {
                memory.pace.reset();
                knock = KNOCK;
            }
            tokio::select! {
                biased;
                () = self.other_kubelet(identity) => continue,
                () = sleep_until(memory.pace.due()) => {}
            }
            match self.open().await {
                Ok(ready) => return ready,
                Err(error @ Error::Connect { .. }) => {
                    if knock >= TELL {
                        let phase = Phase::WaitingForKubelet;
                        self.row.set(phase, &error.to_string(), None);
                    }
                    tokio::select! {
                        () = self.other_kubelet(identity) => {}
                        () = sleep(knock) => {}
                    }
                    knock = (knock * 2).min(self.settings.poll);
                }
                Err(error) => {
                    self.row.set(Phase::Failed, &error.to_string(), None);
                    memory.pace.mark();
                    memory.pace.slow(self.settings.backoff);
                }
            }
        }
    }

    /// Serves and tells no kubelet, until cancelled.
    pub(crate) async fn serve_only(&self, cancel: &CancellationToken) {
        while !cancel.is_cancelled() {
            match self.server() {
                Ok((server, name)) => {
                    let message = "serves without a registration, as the config wants it";
                    self.row.set(Phase::WaitingForKubelet, message, Some(&name));
                    cancel.cancelled().await;
                    server.stop(self.settings.drain).await;
                }
                Err(error) => {
                    self.row.set(Phase::Failed, &error.to_string(), None);
                    let _ = cancel
                        .run_until_cancelled(sleep(self.settings.backoff))
                        .await;
                }
            }
        }
    }

    /// Connects to the kubelet and starts a server under a new name. The kubelet first: without
    /// one there is no need for a socket, and a kubelet that starts would remove it.
    async fn open(&self) -> Result<Ready, Error> {
        // Checked before the kubelet is bothered.
        self.name()?;
        let path = self.settings.dir.join(KUBELET_SOCKET);
        let (kubelet, identity) = match self.connect(&path).await {
            Ok(connected) => connected,
            Err(source) => return Err(Error::Connect { path, source }),
        };
        let (server, name) = self.server()?;
        Ok(Ready {
            server,
            name,
            kubelet,
            path,
            identity,
        })
    }

    /// Starts a server under a new name.
    fn server(&self) -> Result<(Server, String), Error> {
        let name = self.name()?;
        self.kept.sockets.fetch_add(1, Ordering::Relaxed);
        let bound = Bound::bind(&self.settings.dir.join(&name))?;
        let shared = Shared {
            clock: Arc::clone(&self.kept.clock),
            prepare: self.settings.prepare.clone(),
            samples: self.settings.samples.clone(),
        };
        let server = Server::start(bound, self.served.clone(), shared);
        Ok((server, name))
    }

    /// The next name.
    fn name(&self) -> Result<String, TooLong> {
        self.names
            .nth(&self.resource, self.kept.sockets.load(Ordering::Relaxed))
    }

    /// Looks before it connects: if the kubelet is replaced in between, the identity is too old
    /// and we register once more, which is the safe side.
    async fn connect(&self, path: &Path) -> io::Result<(UnixStream, FileIdentity)> {
        let identity = FileIdentity::of_entry(path).ok_or(io::ErrorKind::NotFound)?;
        let connecting = timeout(self.settings.register_limit, UnixStream::connect(path));
        let kubelet = connecting.await.map_err(|_| io::ErrorKind::TimedOut)??;
        Ok((kubelet, identity))
    }

    /// Waits until the offer fits into a message.
    async fn fits(&self) {
        let mut served = self.served.clone();
        loop {
            let Err(error) = served.borrow_and_update().list.clone() else {
                return;
            };
            self.row.set(Phase::Failed, &error.to_string(), None);
            changed(&mut served).await;
        }
    }

    /// Waits for kubelet.sock.
    async fn kubelet(&self) -> FileIdentity {
        let mut folder = self.folder.clone();
        loop {
            let view = *folder.borrow_and_update();
            if let Some(identity) = view.kubelet {
                return identity;
            }
            let dir = self.settings.dir.display();
            let message = match view.exists {
                true => {
                    format!("there is no {KUBELET_SOCKET} in {dir}: the kubelet is not running")
                }
                false => format!("there is no folder {dir}"),
            };
            self.row.set(Phase::WaitingForKubelet, &message, None);
            changed(&mut folder).await;
        }
    }

    /// Waits until kubelet.sock is not the one given.
    async fn other_kubelet(&self, identity: FileIdentity) {
        until(&self.folder, |view| view.kubelet != Some(identity)).await;
    }
}
