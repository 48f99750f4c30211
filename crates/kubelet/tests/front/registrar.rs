//! Minimal kubelet: it takes registrations, and the test makes all other calls.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::Arc,
};

use kubelet_api::deviceplugin::{
    Device, Empty, ListAndWatchResponse, RegisterRequest,
    device_plugin_client::DevicePluginClient,
    registration_server::{Registration, RegistrationServer},
};
use tokio::{
    net::UnixListener,
    sync::{Mutex, mpsc},
    task::JoinSet,
    time::timeout,
};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Channel, Endpoint, Server},
};

use crate::node::LONG;

pub(crate) type Plugin = DevicePluginClient<Channel>;

/// Serves `kubelet.sock` in a folder until dropped. It does not dial the plugin.
pub(crate) struct Registrar {
    dir: PathBuf,
    requests: mpsc::UnboundedReceiver<RegisterRequest>,
    refusals: Arc<Mutex<VecDeque<Status>>>,
    _task: JoinSet<()>,
}

struct Desk {
    requests: mpsc::UnboundedSender<RegisterRequest>,
    refusals: Arc<Mutex<VecDeque<Status>>>,
}

impl Registrar {
    pub(crate) fn start(dir: &Path) -> Self {
        Self::refusing(dir, [])
    }

    /// Refuses one registration with each of the statuses, then accepts all. `{endpoint}` in a
    /// message becomes the socket name of the registration.
    pub(crate) fn refusing(dir: &Path, refusals: impl IntoIterator<Item = Status>) -> Self {
        let path = dir.join("kubelet.sock");
        let _ = fs_err::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let (sender, requests) = mpsc::unbounded_channel();
        let refusals = Arc::new(Mutex::new(refusals.into_iter().collect()));
        let desk = Desk {
            requests: sender,
            refusals: Arc::clone(&refusals),
        };
        let mut task = JoinSet::new();
        task.spawn(async move {
            Server::builder()
                .add_service(RegistrationServer::new(desk))
                .serve_with_incoming(UnixListenerStream::new(listener))
                .await
                .unwrap();
        });
        Self {
            dir: dir.to_owned(),
            requests,
            refusals,
            _task: task,
        }
    }

    /// Waits for the next registration.
    pub(crate) async fn next(&mut self) -> RegisterRequest {
        timeout(LONG, self.requests.recv())
            .await
            .expect("no registration")
            .unwrap()
    }

    /// Waits until at most `left` refusals remain.
    pub(crate) async fn refused_down_to(&self, left: usize) {
        let refused = async {
            while self.refusals.lock().await.len() > left {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        timeout(LONG, refused).await.expect("not refused");
    }

    /// Dials the plugin of a registration.
    pub(crate) async fn dial(&self, request: &RegisterRequest) -> Plugin {
        dial(&self.dir.join(&request.endpoint)).await
    }

    /// Accepts the next registration as a kubelet does: dials the plugin and opens the stream.
    pub(crate) async fn admit(&mut self) -> (Plugin, Streaming<ListAndWatchResponse>) {
        let request = self.next().await;
        let mut plugin = self.dial(&request).await;
        let stream = plugin.list_and_watch(Empty {}).await.unwrap().into_inner();
        (plugin, stream)
    }
}

/// Dials the plugin on a socket.
pub(crate) async fn dial(path: &Path) -> Plugin {
    let channel = Endpoint::from_shared(format!("unix:{}", path.display())).unwrap();
    DevicePluginClient::new(channel.connect().await.unwrap()).max_decoding_message_size(64 << 20)
}

#[tonic::async_trait]
impl Registration for Desk {
    async fn register(&self, request: Request<RegisterRequest>) -> Result<Response<Empty>, Status> {
        let request = request.into_inner();
        if let Some(refusal) = self.refusals.lock().await.pop_front() {
            let message = refusal.message().replace("{endpoint}", &request.endpoint);
            return Err(Status::new(refusal.code(), message));
        }
        self.requests.send(request).unwrap();
        Ok(Response::new(Empty {}))
    }
}

/// Waits for the next list of a stream.
pub(crate) async fn next(stream: &mut Streaming<ListAndWatchResponse>) -> Vec<Device> {
    timeout(LONG, stream.message())
        .await
        .expect("no list")
        .unwrap()
        .expect("the stream ended")
        .devices
}
