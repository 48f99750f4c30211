//! Pod resources API: the devices that containers hold, and the allocatable ones.

use std::sync::{Arc, Mutex, PoisonError};

use kubelet_api::podresources::{
    AllocatableResourcesRequest, AllocatableResourcesResponse, ContainerDevices,
    ContainerResources, GetPodResourcesRequest, GetPodResourcesResponse, ListPodResourcesRequest,
    ListPodResourcesResponse, NumaNode, PodResources, TopologyInfo,
    pod_resources_lister_server::PodResourcesLister,
};
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use super::{
    KubeletCore,
    pod::PodId,
    state::{ActivePod, KubeletState},
};

/// Rate limit of the kubelet for this API: calls per second, and calls at once.
const RATE: f64 = 100.0;
const BURST: f64 = 10.0;

/// Service behind the pod resources socket.
#[derive(Debug)]
pub(super) struct PodResourcesService {
    core: Arc<KubeletCore>,
    bucket: Mutex<TokenBucket>,
}

/// Token bucket: one token for each call.
#[derive(Debug)]
struct TokenBucket {
    tokens: f64,
    at: Instant,
}

// === impl PodResourcesService ===

impl PodResourcesService {
    pub(super) fn new(core: Arc<KubeletCore>) -> Self {
        let bucket = Mutex::new(TokenBucket {
            tokens: BURST,
            at: Instant::now(),
        });
        Self { core, bucket }
    }

    fn take_token(&self) -> Result<(), Status> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let earned = (now - bucket.at).as_secs_f64() * RATE;
        bucket.tokens = (bucket.tokens + earned).min(BURST);
        bucket.at = now;
        if bucket.tokens < 1.0 {
            return Err(Status::resource_exhausted("rejected by rate limit"));
        }
        bucket.tokens -= 1.0;
        Ok(())
    }
}

#[tonic::async_trait]
impl PodResourcesLister for PodResourcesService {
    async fn list(
        &self,
        _: Request<ListPodResourcesRequest>,
    ) -> Result<Response<ListPodResourcesResponse>, Status> {
        self.take_token()?;
        let pod_resources = self.core.read_state(|state| {
            let pods = state.pods.values();
            pods.map(|active| describe_pod(state, active)).collect()
        });
        Ok(Response::new(ListPodResourcesResponse { pod_resources }))
    }

    async fn get_allocatable_resources(
        &self,
        _: Request<AllocatableResourcesRequest>,
    ) -> Result<Response<AllocatableResourcesResponse>, Status> {
        self.take_token()?;
        let devices = self.core.read_state(list_allocatable);
        Ok(Response::new(AllocatableResourcesResponse {
            devices,
            ..Default::default()
        }))
    }

    async fn get(
        &self,
        request: Request<GetPodResourcesRequest>,
    ) -> Result<Response<GetPodResourcesResponse>, Status> {
        self.take_token()?;
        let request = request.into_inner();
        let id = PodId {
            namespace: request.pod_namespace,
            name: request.pod_name,
        };
        let pod_resources = self.core.read_state(|state| {
            let active = state.pods.get(&id);
            active.map(|active| describe_pod(state, active))
        });
        // The kubelet returns a plain error here, which grpc-go sends as Unknown and not as
        // NotFound.
        if pod_resources.is_none() {
            let PodId { namespace, name } = id;
            return Err(Status::unknown(format!(
                "pod {name} in namespace {namespace} not found"
            )));
        }
        Ok(Response::new(GetPodResourcesResponse { pod_resources }))
    }
}

fn describe_pod(state: &KubeletState, active: &ActivePod) -> PodResources {
    // Init containers that have ended are not in the answer; sidecars are.
    let containers = active
        .pod
        .lasting_containers()
        .map(|container| ContainerResources {
            name: container.name.clone(),
            devices: state
                .held_entries(&active.uid, &container.name)
                .into_iter()
                .flat_map(|entry| {
                    let ids = entry.device_ids().into_iter();
                    ids.map(|id| device_row(&entry.resource, &id, &entry.device_nodes(&id)))
                })
                .collect(),
            ..Default::default()
        });
    PodResources {
        name: active.pod.name.clone(),
        namespace: active.pod.namespace.clone(),
        containers: containers.collect(),
        ..Default::default()
    }
}

fn list_allocatable(state: &KubeletState) -> Vec<ContainerDevices> {
    let resources = state.resources.iter();
    let devices = resources.flat_map(|(name, resource)| {
        let devices = resource.devices.iter().flatten();
        devices.map(move |(id, device)| (name, id, device))
    });
    devices
        .filter(|(_, _, device)| device.healthy)
        .map(|(name, id, device)| device_row(name, id, &device.numa))
        .collect()
}

/// Device entry of a pod resources answer. The kubelet sends one entry for each device.
fn device_row(resource: &str, id: &str, numa: &[i64]) -> ContainerDevices {
    let nodes = numa.iter().map(|id| NumaNode { id: *id });
    ContainerDevices {
        resource_name: resource.to_owned(),
        device_ids: vec![id.to_owned()],
        topology: (!numa.is_empty()).then(|| TopologyInfo {
            nodes: nodes.collect(),
        }),
    }
}
