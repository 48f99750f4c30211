//! Preconditions of a registration: a list within the size limit, a kubelet that accepts
//! connections, the end of the delay, and a server with a socket name of its own.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use api::Phase;
use host::{FileIdentity, socket::BoundSocket};
use kubelet_api::KUBELET_SOCKET;
use tokio::{
    net::UnixStream,
    time::{sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    plugin::{PluginMemory, ResourcePlugin},
    server::PluginServer,
    service::SharedByServices,
    wait::{wait_changed, wait_until},
};
use crate::socket::SocketPathTooLong;

// A Go listener creates the file by bind(2) and accepts only after listen(2), so a connection in
// between is refused.
/// First pause after `kubelet.sock` refused a connection. It doubles up to `Settings::poll`.
const KNOCK: Duration = Duration::from_millis(5);
/// Pause from which on the refusal is reported.
const TELL: Duration = Duration::from_millis(100);

/// A running server, and a connection to the kubelet for its registration.
#[derive(Debug)]
pub(crate) struct ReadyServer {
    pub(crate) server: PluginServer,
    pub(crate) name: String,
    pub(crate) kubelet: UnixStream,
    pub(crate) path: PathBuf,
    pub(crate) identity: FileIdentity,
}

/// Error while the server or the connection to the kubelet is set up.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    TooLong(#[from] SocketPathTooLong),
    #[error("{} does not accept connections: {source}", path.display())]
    Connect { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Bind(#[from] host::socket::Error),
}

// === impl ResourcePlugin ===

impl ResourcePlugin {
    /// Waits for a kubelet and for the time of the next attempt, and starts a server.
    pub(crate) async fn wait_until_ready(&self, memory: &mut PluginMemory) -> ReadyServer {
        let mut knock = KNOCK;
        loop {
            self.wait_for_fitting_list().await;
            let identity = self.wait_for_kubelet().await;
            if memory.tried.replace(identity) != Some(identity) {
                memory.pace.reset_delay();
                knock = KNOCK;
            }
            tokio::select! {
                biased;
                () = self.other_kubelet(identity) => continue,
                () = sleep_until(memory.pace.next_attempt()) => {}
            }
            match self.connect_and_serve().await {
                Ok(ready) => return ready,
                Err(error @ Error::Connect { .. }) => {
                    if knock >= TELL {
                        let phase = Phase::WaitingForKubelet;
                        self.row.set_phase(phase, &error.to_string(), None);
                    }
                    tokio::select! {
                        () = self.other_kubelet(identity) => {}
                        () = sleep(knock) => {}
                    }
                    knock = (knock * 2).min(self.settings.poll);
                }
                Err(error) => {
                    self.row.set_phase(Phase::Failed, &error.to_string(), None);
                    memory.pace.mark();
                    memory.pace.back_off(self.settings.backoff);
                }
            }
        }
    }

    /// Serves without a registration, until cancelled.
    pub(crate) async fn serve_only(&self, cancel: &CancellationToken) {
        while !cancel.is_cancelled() {
            match self.server() {
                Ok((server, name)) => {
                    let message = "serves without a registration, as the config wants it";
                    self.row
                        .set_phase(Phase::WaitingForKubelet, message, Some(&name));
                    cancel.cancelled().await;
                    server.stop_within(self.settings.drain).await;
                }
                Err(error) => {
                    self.row.set_phase(Phase::Failed, &error.to_string(), None);
                    let _ = cancel
                        .run_until_cancelled(sleep(self.settings.backoff))
                        .await;
                }
            }
        }
    }

    /// Connects to the kubelet, and starts a server with a new socket name.
    async fn connect_and_serve(&self) -> Result<ReadyServer, Error> {
        // The kubelet comes first: without one no socket is needed, and a kubelet that starts
        // removes all sockets in its folder (pkg/kubelet/cm/devicemanager/manager.go,
        // `CleanupPluginDirectory`). A name that is too long fails without a connection.
        self.next_socket_name()?;
        let path = self.settings.dir.join(KUBELET_SOCKET);
        let (kubelet, identity) = match self.connect_kubelet(&path).await {
            Ok(connected) => connected,
            Err(source) => return Err(Error::Connect { path, source }),
        };
        let (server, name) = self.server()?;
        Ok(ReadyServer {
            server,
            name,
            kubelet,
            path,
            identity,
        })
    }

    /// Starts a server with a new socket name.
    fn server(&self) -> Result<(PluginServer, String), Error> {
        let name = self.next_socket_name()?;
        self.kept.sockets.fetch_add(1, Ordering::Relaxed);
        let bound = BoundSocket::bind_path(&self.settings.dir.join(&name))?;
        let shared = SharedByServices {
            grant_history: Arc::clone(&self.kept.clock),
            prepare: self.settings.prepare.clone(),
            samples: self.settings.samples.clone(),
        };
        let server = PluginServer::serve_on(bound, self.served.clone(), shared);
        Ok((server, name))
    }

    /// Name of the next socket.
    fn next_socket_name(&self) -> Result<String, SocketPathTooLong> {
        self.names
            .nth(&self.resource, self.kept.sockets.load(Ordering::Relaxed))
    }

    /// Connects to the kubelet. Returns the identity of its socket too.
    async fn connect_kubelet(&self, path: &Path) -> io::Result<(UnixStream, FileIdentity)> {
        // The identity is read before the connection is made. If the kubelet restarts in between,
        // the identity is too old, and the worst result is one more registration.
        let identity = FileIdentity::of_entry(path).ok_or(io::ErrorKind::NotFound)?;
        let connecting = timeout(self.settings.register_limit, UnixStream::connect(path));
        let kubelet = connecting.await.map_err(|_| io::ErrorKind::TimedOut)??;
        Ok((kubelet, identity))
    }

    /// Waits until the device list fits into a message.
    async fn wait_for_fitting_list(&self) {
        let mut served = self.served.clone();
        loop {
            let Err(error) = served.borrow_and_update().list.clone() else {
                return;
            };
            self.row.set_phase(Phase::Failed, &error.to_string(), None);
            wait_changed(&mut served).await;
        }
    }

    /// Waits for `kubelet.sock`. Returns its identity.
    async fn wait_for_kubelet(&self) -> FileIdentity {
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
            self.row.set_phase(Phase::WaitingForKubelet, &message, None);
            wait_changed(&mut folder).await;
        }
    }

    /// Waits until `kubelet.sock` is absent or has another identity.
    async fn other_kubelet(&self, identity: FileIdentity) {
        wait_until(&self.folder, |view| view.kubelet != Some(identity)).await;
    }
}
