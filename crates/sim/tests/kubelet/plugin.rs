//! Device plugin with scripted behaviour, which counts its calls.

use std::{
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::StreamExt as _;
use kubelet_api::{
    HEALTHY, UNHEALTHY, VERSION,
    deviceplugin::{
        AllocateRequest, AllocateResponse, ContainerAllocateResponse,
        ContainerPreferredAllocationRequest, ContainerPreferredAllocationResponse, Device,
        DevicePluginOptions, Empty, ListAndWatchResponse, NumaNode, PreStartContainerRequest,
        PreStartContainerResponse, PreferredAllocationRequest, PreferredAllocationResponse,
        RegisterRequest, TopologyInfo,
        device_plugin_server::{DevicePlugin, DevicePluginServer},
        registration_client::RegistrationClient,
    },
};
use tokio::{net::UnixListener, sync::watch, task::JoinSet};
use tokio_stream::{
    Stream,
    wrappers::{UnixListenerStream, WatchStream},
};
use tokio_util::sync::CancellationToken;
use tonic::{
    Request, Response, Status,
    transport::{Endpoint, Server},
};

type Prefer =
    dyn Fn(&ContainerPreferredAllocationRequest) -> Result<Vec<String>, Status> + Send + Sync;
type Allocate = dyn Fn(&[String]) -> Result<Vec<ContainerAllocateResponse>, Status> + Send + Sync;

/// Scripted behaviour of a plugin.
pub(crate) struct Script {
    pub(crate) options: Result<DevicePluginOptions, Status>,
    pub(crate) list: Result<(), Status>,
    pub(crate) prefer: Option<Box<Prefer>>,
    pub(crate) allocate: Box<Allocate>,
    pub(crate) hang_in_allocate: bool,
    pub(crate) pre_start: Result<(), Status>,
}

/// Plugin that serves on its socket; stops on drop.
pub(crate) struct Plugin {
    pub(crate) calls: Arc<Calls>,
    dir: PathBuf,
    endpoint: String,
    devices: watch::Sender<Vec<Device>>,
    streams: CancellationToken,
    tasks: JoinSet<()>,
}

/// Calls that a plugin received.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub(crate) options: AtomicUsize,
    pub(crate) lists: AtomicUsize,
    pub(crate) ended: AtomicUsize,
    pub(crate) prefer: Mutex<Vec<ContainerPreferredAllocationRequest>>,
    pub(crate) allocate: Mutex<Vec<AllocateRequest>>,
    pub(crate) pre_start: Mutex<Vec<Vec<String>>>,
}

struct Service {
    script: Script,
    calls: Arc<Calls>,
    devices: watch::Sender<Vec<Device>>,
    streams: CancellationToken,
}

/// Counts the end of a stream on drop, whichever side ended it.
struct Ended(Arc<Calls>);

// === impl Script ===

impl Default for Script {
    fn default() -> Self {
        Self {
            options: Ok(DevicePluginOptions::default()),
            list: Ok(()),
            prefer: None,
            allocate: Box::new(|ids| Ok(vec![env("IDS", &ids.join(","))])),
            hang_in_allocate: false,
            pre_start: Ok(()),
        }
    }
}

impl Script {
    pub(crate) fn preferring(
        prefer: impl Fn(&ContainerPreferredAllocationRequest) -> Result<Vec<String>, Status>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            options: Ok(DevicePluginOptions {
                get_preferred_allocation_available: true,
                ..Default::default()
            }),
            prefer: Some(Box::new(prefer)),
            ..Self::default()
        }
    }
}

// === impl Plugin ===

impl Plugin {
    /// Serves devices on a socket in the kubelet's directory.
    pub(crate) fn serve(dir: &Path, endpoint: &str, devices: Vec<Device>, script: Script) -> Self {
        let listener = UnixListener::bind(dir.join(endpoint)).unwrap();
        let plugin = Self {
            calls: Arc::default(),
            dir: dir.to_owned(),
            endpoint: endpoint.to_owned(),
            devices: watch::Sender::new(devices),
            streams: CancellationToken::new(),
            tasks: JoinSet::new(),
        };
        let service = Service {
            script,
            calls: Arc::clone(&plugin.calls),
            devices: plugin.devices.clone(),
            streams: plugin.streams.clone(),
        };
        let mut plugin = plugin;
        plugin.tasks.spawn(async move {
            let service = DevicePluginServer::new(service);
            let server = Server::builder().add_service(service);
            let incoming = UnixListenerStream::new(listener);
            server.serve_with_incoming(incoming).await.unwrap();
        });
        plugin
    }

    /// Serves devices with the default behaviour.
    pub(crate) fn simple(dir: &Path, endpoint: &str, devices: Vec<Device>) -> Self {
        Self::serve(dir, endpoint, devices, Script::default())
    }

    pub(crate) async fn register(&self, resource: &str) -> Result<(), Status> {
        register(&self.dir, VERSION, resource, &self.endpoint).await
    }

    /// Sends a new list.
    pub(crate) fn send(&self, devices: Vec<Device>) {
        self.devices.send_replace(devices);
    }

    /// Ends the ListAndWatch streams.
    pub(crate) fn end_streams(&self) {
        self.streams.cancel();
    }
}

impl Drop for Plugin {
    /// Connections of a server outlive the server; the streams on them must not.
    fn drop(&mut self) {
        self.end_streams();
    }
}

// === impl Calls ===

impl Calls {
    pub(crate) fn streams(&self) -> usize {
        self.lists.load(Ordering::SeqCst)
    }

    pub(crate) fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }

    /// Ids of each Allocate, sorted.
    pub(crate) fn allocated(&self) -> Vec<Vec<String>> {
        let calls = self.allocate.lock().unwrap();
        let ids = calls.iter().map(|call| {
            assert_eq!(call.container_requests.len(), 1, "one container request");
            let mut ids = call.container_requests[0].device_ids.clone();
            ids.sort();
            ids
        });
        ids.collect()
    }
}

// === impl Ended ===

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

// === impl Service ===

#[tonic::async_trait]
impl DevicePlugin for Service {
    type ListAndWatchStream =
        Pin<Box<dyn Stream<Item = Result<ListAndWatchResponse, Status>> + Send>>;

    async fn get_device_plugin_options(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<DevicePluginOptions>, Status> {
        self.calls.options.fetch_add(1, Ordering::SeqCst);
        self.script.options.clone().map(Response::new)
    }

    async fn list_and_watch(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<Self::ListAndWatchStream>, Status> {
        self.calls.lists.fetch_add(1, Ordering::SeqCst);
        self.script.list.clone()?;
        let ended = Ended(Arc::clone(&self.calls));
        let lists = WatchStream::new(self.devices.subscribe()).map(move |devices| {
            let _held = &ended;
            Ok(ListAndWatchResponse { devices })
        });
        let lists = lists.take_until(self.streams.clone().cancelled_owned());
        Ok(Response::new(Box::pin(lists)))
    }

    async fn get_preferred_allocation(
        &self,
        request: Request<PreferredAllocationRequest>,
    ) -> Result<Response<PreferredAllocationResponse>, Status> {
        let request = request.into_inner().container_requests.remove(0);
        self.calls.prefer.lock().unwrap().push(request.clone());
        let prefer = self
            .script
            .prefer
            .as_ref()
            .expect("asked without the option");
        let device_ids = prefer(&request)?;
        Ok(Response::new(PreferredAllocationResponse {
            container_responses: vec![ContainerPreferredAllocationResponse { device_ids }],
        }))
    }

    async fn allocate(
        &self,
        request: Request<AllocateRequest>,
    ) -> Result<Response<AllocateResponse>, Status> {
        let request = request.into_inner();
        self.calls.allocate.lock().unwrap().push(request.clone());
        if self.script.hang_in_allocate {
            std::future::pending::<()>().await;
        }
        let container_responses = (self.script.allocate)(&request.container_requests[0].device_ids);
        Ok(Response::new(AllocateResponse {
            container_responses: container_responses?,
        }))
    }

    async fn pre_start_container(
        &self,
        request: Request<PreStartContainerRequest>,
    ) -> Result<Response<PreStartContainerResponse>, Status> {
        let mut ids = request.into_inner().device_ids;
        ids.sort();
        self.calls.pre_start.lock().unwrap().push(ids);
        self.script.pre_start.clone()?;
        Ok(Response::new(PreStartContainerResponse {}))
    }
}

/// Calls Register.
pub(crate) async fn register(
    dir: &Path,
    version: &str,
    resource: &str,
    endpoint: &str,
) -> Result<(), Status> {
    let socket = format!("unix:{}", dir.join("kubelet.sock").display());
    let channel = Endpoint::from_shared(socket).unwrap().connect().await;
    let channel = channel.map_err(|error| Status::unavailable(error.to_string()))?;
    let request = RegisterRequest {
        version: version.to_owned(),
        endpoint: endpoint.to_owned(),
        resource_name: resource.to_owned(),
        options: None,
    };
    RegistrationClient::new(channel).register(request).await?;
    Ok(())
}

/// Healthy devices without topology.
pub(crate) fn devices(ids: &[&str]) -> Vec<Device> {
    ids.iter().map(|id| device(id, true)).collect()
}

pub(crate) fn device(id: &str, healthy: bool) -> Device {
    Device {
        id: id.to_owned(),
        health: if healthy { HEALTHY } else { UNHEALTHY }.to_owned(),
        topology: None,
    }
}

/// A healthy device on NUMA nodes.
pub(crate) fn on(id: &str, nodes: &[i64]) -> Device {
    Device {
        topology: Some(TopologyInfo {
            nodes: nodes.iter().map(|id| NumaNode { id: *id }).collect(),
        }),
        ..device(id, true)
    }
}

/// Answer with one environment variable.
pub(crate) fn env(name: &str, value: &str) -> ContainerAllocateResponse {
    ContainerAllocateResponse {
        envs: [(name.to_owned(), value.to_owned())].into(),
        ..Default::default()
    }
}
