//! gRPC server of one registration, with a socket of its own. Its shutdown has a time limit.

use std::{sync::Arc, time::Duration};

use futures_util::{Stream, stream};
use host::socket::{BoundSocket, SocketFile};
use kubelet_api::deviceplugin::device_plugin_server::DevicePluginServer;
use tokio::{
    net::UnixListener,
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::Server as Grpc;

use super::service::{PluginService, ServedOffer, SharedByServices, StreamState};
use crate::socket::CuttableConnection;

/// Pause after a failed accept(2), for example after EMFILE.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A running server. A drop cuts off its connections and removes its socket at once.
#[derive(Debug)]
pub(crate) struct PluginServer {
    /// Ends our streams, and lets the connections finish.
    close: CancellationToken,
    /// Cuts off the connections that do not finish.
    cut: DropGuard,
    stream: watch::Receiver<StreamState>,
    task: JoinSet<()>,
    file: SocketFile,
}

// === impl PluginServer ===

impl PluginServer {
    /// Starts a server on a bound socket.
    pub(crate) fn serve_on(
        bound: BoundSocket,
        served: watch::Receiver<Arc<ServedOffer>>,
        shared: SharedByServices,
    ) -> Self {
        let (listener, file) = bound.into_parts();
        let (close, cut) = (CancellationToken::new(), CancellationToken::new());
        let line = Arc::new(watch::Sender::new(StreamState::default()));
        let receiver = line.subscribe();
        let service = PluginService::new(served, line, close.clone(), shared);
        let serving = Grpc::builder()
            .add_service(DevicePluginServer::new(service))
            .serve_with_incoming_shutdown(
                connections(listener, cut.clone()),
                close.clone().cancelled_owned(),
            );
        let mut task = JoinSet::new();
        task.spawn(async move {
            if let Err(error) = serving.await {
                tracing::warn!(%error, "a device plugin server ended");
            }
        });
        Self {
            close,
            cut: cut.drop_guard(),
            stream: receiver,
            task,
            file,
        }
    }

    /// State of the kubelet's stream.
    pub(crate) fn stream_state(&self) -> watch::Receiver<StreamState> {
        self.stream.clone()
    }

    /// File of the socket.
    pub(crate) fn socket_file(&self) -> &SocketFile {
        &self.file
    }

    /// Ends our streams, waits up to `drain` for the connections to finish, cuts off the rest, and
    /// removes the socket. Afterwards the kubelet has no stream of ours.
    pub(crate) async fn stop_within(mut self, drain: Duration) {
        self.close.cancel();
        // tonic's graceful shutdown has no limit: it waits for every open connection, also for one
        // on which the peer sends nothing. Hence the timeout and the cut.
        let drained = timeout(drain, self.task.join_next()).await.is_ok();
        drop(self.cut);
        if !drained && timeout(drain, self.task.join_next()).await.is_err() {
            self.task.abort_all();
        }
    }
}

fn connections(
    listener: UnixListener,
    cut: CancellationToken,
) -> impl Stream<Item = std::io::Result<CuttableConnection>> {
    stream::unfold((listener, cut), |(listener, cut)| async move {
        let accepted = match listener.accept().await {
            Ok((stream, _)) => Ok(CuttableConnection::new(
                stream,
                cut.clone().cancelled_owned(),
            )),
            Err(error) => {
                // After EMFILE the connection stays in the queue, so that accept(2) fails again at
                // once. The pause prevents a busy loop.
                sleep(ACCEPT_PAUSE).await;
                Err(error)
            }
        };
        Some((accepted, (listener, cut)))
    })
}
