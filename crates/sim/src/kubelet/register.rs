//! Registration, and the single ListAndWatch stream that follows it.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kubelet_api::{
    MESSAGE_LIMIT, VERSION,
    deviceplugin::{
        DevicePluginOptions, Empty, ListAndWatchResponse, RegisterRequest,
        device_plugin_client::DevicePluginClient, registration_server,
    },
};
use tokio::{sync::oneshot, time::Instant};
use tokio_util::sync::CancellationToken;
use tonic::{
    Request, Response, Status,
    transport::{Channel, server::UdsConnectInfo},
};

use super::{
    Era, KubeletCore, name,
    record::{Breach, DeviceList, RegistrationOutcome},
    state::PluginEndpoint,
    wire,
};

/// Pause between two attempts to connect.
const REDIAL: Duration = Duration::from_millis(100);

/// Kubelet's side of one registration.
#[derive(Debug)]
pub(super) struct PluginClient {
    pub(super) resource: String,
    socket: PathBuf,
    endpoint: String,
    /// Token that ends the stream and keeps the connection.
    pub(super) cut: CancellationToken,
    /// Token that ends the connection.
    closed: CancellationToken,
    /// Token of the kubelet's run that accepted the registration; messages after its end are
    /// ignored.
    life: CancellationToken,
    /// True after [`super::Kubelet::forget_resource`]: the stream is read and ignored.
    pub(super) forgotten: AtomicBool,
    /// Connection and options of the plugin, to become the resource's endpoint.
    link: PluginEndpoint,
}

/// Service behind `kubelet.sock`, for one run of the kubelet.
#[derive(Debug)]
pub(super) struct RegistrationService {
    pub(super) core: Arc<KubeletCore>,
    pub(super) life: CancellationToken,
}

// === impl RegistrationService ===

#[tonic::async_trait]
impl registration_server::Registration for RegistrationService {
    async fn register(&self, request: Request<RegisterRequest>) -> Result<Response<Empty>, Status> {
        let info = request.extensions().get::<UdsConnectInfo>();
        let pid = info.and_then(|info| info.peer_cred?.pid());
        let request = request.into_inner();
        let (core, life) = (Arc::clone(&self.core), self.life.clone());
        let (answer, answered) = oneshot::channel();
        // Runs as a task of its own: a handler in Go runs to its end even if the caller has
        // cancelled the call.
        self.core.spawn_task(async move {
            let work = core.handle_registration(request, pid, life.clone());
            if let Some(result) = life.run_until_cancelled(work).await {
                let _ = answer.send(result);
            }
        });
        let result = answered
            .await
            .map_err(|_| Status::unavailable("the kubelet is stopping"))?;
        // grpc-go sends an error that is not a status as code Unknown.
        result
            .map(|()| Response::new(Empty {}))
            .map_err(Status::unknown)
    }
}

// === impl KubeletCore ===

impl KubeletCore {
    async fn handle_registration(
        self: &Arc<Self>,
        request: RegisterRequest,
        pid: Option<i32>,
        life: CancellationToken,
    ) -> Result<(), String> {
        let number = self.change_state(|state| state.record.record_registration(&request, pid));
        let result = self.accept(&request, life).await;
        let outcome = match &result {
            Ok(()) => RegistrationOutcome::Accepted,
            Err(message) => RegistrationOutcome::Refused(message.clone()),
        };
        tracing::debug!(
            resource = request.resource_name,
            endpoint = request.endpoint,
            ?outcome,
            "registration"
        );
        self.change_state(|state| state.record.registrations[number].outcome = outcome);
        result
    }

    async fn accept(
        self: &Arc<Self>,
        request: &RegisterRequest,
        life: CancellationToken,
    ) -> Result<(), String> {
        let stall = self.read_state(|state| state.faults.stall);
        tokio::time::sleep(stall).await;
        if let Some(message) = self.change_state(|state| state.faults.refuse.pop_front()) {
            return Err(message);
        }
        if request.version != VERSION {
            return Err(format!(
                "requested API version {:?} is not supported by kubelet. Supported version is {:?}",
                request.version,
                [VERSION]
            ));
        }
        // Same checks in the same order as in the kubelet (plugin/v1beta1/server.go, Register).
        if !name::is_extended_resource(&request.resource_name) {
            return Err(format!(
                "the ResourceName {:?} is invalid",
                request.resource_name
            ));
        }
        let client = self.connect_plugin(request, life).await?;
        let core = Arc::clone(self);
        self.spawn_task(async move {
            core.read_lists(&client).await;
            core.end_stream(&client);
        });
        Ok(())
    }

    /// Connects to the plugin, asks for its options and makes it the endpoint of its resource.
    async fn connect_plugin(
        self: &Arc<Self>,
        request: &RegisterRequest,
        life: CancellationToken,
    ) -> Result<Arc<PluginClient>, String> {
        let resource = &request.resource_name;
        let socket = self.settings.dir.join(&request.endpoint);
        if self.is_connected(resource, &socket) {
            return Err(format!(
                "device plugin {resource} with socket {} is already connected",
                socket.display()
            ));
        }
        let closed = life.child_token();
        let link = self.ask_options(resource, &socket, &closed).await;
        let link = link.inspect_err(|_| {
            closed.cancel();
            // A kubelet that keys clients by resource alone now forgets the earlier client, too.
            // The end of the earlier stream then goes unreported (handler.go, connectClient).
            if self.settings.era == Era::V1_36 {
                self.change_state(|state| state.clients.remove(resource));
            }
        })?;
        let client = Arc::new(PluginClient {
            resource: resource.clone(),
            socket,
            endpoint: request.endpoint.clone(),
            cut: closed.child_token(),
            closed,
            life,
            forgotten: AtomicBool::new(false),
            link,
        });
        self.change_state(|state| {
            let clients = state.clients.entry(resource.clone()).or_default();
            // From 1.37 on several clients of one resource may be connected (Kubernetes PR 135437).
            if self.settings.era == Era::V1_36 {
                clients.clear();
            }
            clients.push(Arc::clone(&client));
            let entry = state.resources.entry(resource.clone()).or_default();
            entry.endpoint = client.link.clone();
        });
        Ok(client)
    }

    fn is_connected(&self, resource: &str, socket: &Path) -> bool {
        self.settings.era == Era::V1_37
            && self.read_state(|state| {
                let clients = state.clients.get(resource);
                clients.is_some_and(|clients| clients.iter().any(|c| c.socket == socket))
            })
    }

    async fn ask_options(
        &self,
        resource: &str,
        socket: &Path,
        closed: &CancellationToken,
    ) -> Result<PluginEndpoint, String> {
        let channel = self.dial(socket, closed).await?;
        let mut api = DevicePluginClient::new(channel).max_decoding_message_size(MESSAGE_LIMIT);
        let options = api.get_device_plugin_options(Empty {}).await;
        let options: DevicePluginOptions = match options {
            Ok(options) => options.into_inner(),
            Err(status) => {
                self.note_oversize(resource, &status);
                let words = wire::format_status(&status);
                return Err(format!("failed to get device plugin options: {words}"));
            }
        };
        Ok(PluginEndpoint {
            api: Some(api),
            options,
            stopped: None,
        })
    }

    /// Connects, with retries until the time limit, as a blocking grpc-go dial does.
    async fn dial(&self, socket: &Path, closed: &CancellationToken) -> Result<Channel, String> {
        let attempts = async {
            loop {
                let library = &self.settings.library;
                match wire::connect_once(socket, library, closed.clone()).await {
                    Ok(channel) => return channel,
                    Err(_) => tokio::time::sleep(REDIAL).await,
                }
            }
        };
        let dialled = tokio::time::timeout(self.settings.dial, attempts).await;
        dialled.map_err(|_| "failed to dial device plugin: context deadline exceeded".to_owned())
    }

    /// Reads the stream until it ends, fails or is cut.
    async fn read_lists(&self, client: &PluginClient) {
        let read = async {
            let mut api = client.link.api.clone().expect("a connected client has one");
            // No deadline, and no second call: the kubelet never re-opens a stream that has ended.
            let mut stream = api.list_and_watch(Empty {}).await?.into_inner();
            while let Some(list) = stream.message().await? {
                self.take_list(client, list);
            }
            Ok::<(), Status>(())
        };
        let ended = tokio::select! {
            ended = read => ended,
            () = client.cut.cancelled() => Ok(()),
        };
        if let Err(status) = ended {
            self.note_oversize(&client.resource, &status);
            let (resource, error) = (&client.resource, wire::format_status(&status));
            tracing::debug!(resource, error, "ListAndWatch ended");
        }
    }

    fn take_list(&self, client: &PluginClient, list: ListAndWatchResponse) {
        let resource = &client.resource;
        if client.life.is_cancelled() {
            return;
        }
        self.change_state(|state| {
            if !client.forgotten.load(Ordering::Relaxed) {
                state.replace_devices(resource, &list.devices);
            }
            let list = DeviceList {
                at: Instant::now(),
                endpoint: client.endpoint.clone(),
                devices: list.devices,
            };
            state.record.record_list(resource, list);
        });
        self.save_checkpoint();
    }

    /// Handles the end of a stream: marks the resource unhealthy unless another plugin serves it.
    fn end_stream(self: &Arc<Self>, client: &Arc<PluginClient>) {
        client.closed.cancel();
        if client.forgotten.load(Ordering::Relaxed) || client.life.is_cancelled() {
            return;
        }
        let resource = &client.resource;
        let gone = self.change_state(|state| {
            let Some(clients) = state.clients.get_mut(resource) else {
                return false;
            };
            match self.settings.era {
                // These kubelets look the client up by resource, so a newer registration is closed
                // in place of the one whose stream ended.
                Era::V1_36 => clients.drain(..).for_each(|client| client.closed.cancel()),
                Era::V1_37 => clients.retain(|other| !Arc::ptr_eq(other, client)),
            }
            if let Some(newest) = clients.last() {
                let entry = state.resources.entry(resource.clone()).or_default();
                entry.endpoint = newest.link.clone();
                return false;
            }
            state.clients.remove(resource);
            state.disconnect(resource);
            true
        });
        if gone {
            self.expire_later(resource.clone());
        }
    }

    /// Forgets a stopped resource when its grace period is over.
    pub(super) fn expire_later(self: &Arc<Self>, resource: String) {
        let core = Arc::clone(self);
        self.spawn_task(async move {
            tokio::time::sleep(core.settings.grace).await;
            if core.change_state(|state| state.expire_resource(&resource, core.settings.grace)) {
                core.save_checkpoint();
            }
        });
    }

    /// Records a breach if the status is grpc-go's error for a message above its limit.
    pub(super) fn note_oversize(&self, resource: &str, status: &Status) {
        if let Some(size) = wire::oversize_bytes(status) {
            self.change_state(|state| {
                state
                    .record
                    .record_breach(resource, Breach::MessageTooLarge(size))
            });
        }
    }
}
