//! Pod admission: chooses the devices of each container and calls the plugins.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

use kubelet_api::deviceplugin::{
    AllocateRequest, ContainerAllocateRequest, ContainerAllocateResponse,
    ContainerPreferredAllocationRequest, PreStartContainerRequest, PreferredAllocationRequest,
    device_plugin_client::DevicePluginClient,
};
use tokio::time::Instant;
use tonic::transport::Channel;

use super::{
    KubeletCore,
    choose::{DeviceChoice, DeviceIds, DeviceNeed, check_present, flaw, shuffled},
    pod::{AdmittedPod, GrantedDevices, Pod, PodContainer, PodId},
    record::{Allocation, Breach},
    state::{ActivePod, DeviceEntry, KubeletState, PluginEndpoint},
    wire,
};

/// Time limit for PreStartContainer, the only call of the kubelet with a deadline.
const PRE_START_LIMIT: Duration = Duration::from_secs(30);

/// Reason why a pod was rejected or a container not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// The kubelet is not running.
    #[error("the kubelet is stopped")]
    Stopped,
    /// A pod of that name is on the node already.
    #[error("pod {0} exists already")]
    Exists(PodId),
    /// No such pod or container is on the node.
    #[error("no container {container} in a pod {pod}")]
    Unknown {
        /// The pod.
        pod: PodId,
        /// The container.
        container: String,
    },
    /// The kubelet rejects the pod. In a cluster the pod has the phase Failed, the reason
    /// `UnexpectedAdmissionError` and this message.
    #[error("Allocate failed due to {0}, which is unexpected")]
    Unexpected(String),
    /// The pod is admitted and holds its devices, but a container cannot start.
    #[error("container {container} cannot start: {message}")]
    Start {
        /// The container.
        container: String,
        /// Error text of the kubelet.
        message: String,
    },
}

/// Admission of one pod in progress. Unless `admitted` is set, the drop frees its devices, also
/// when the caller drops the future.
struct PodAdmission<'a> {
    core: &'a Arc<KubeletCore>,
    id: PodId,
    uid: String,
    admitted: bool,
}

// === impl KubeletCore ===

impl KubeletCore {
    pub(super) async fn run_admission(
        self: &Arc<Self>,
        pod: Pod,
    ) -> Result<AdmittedPod, AdmissionError> {
        // The kubelet admits one pod at a time and has no deadline for Allocate: a plugin that
        // hangs there stops all admissions.
        let _turn = self.admission.lock().await;
        let id = pod.pod_id();
        let uid = self.change_state(|state| enter(state, &id))?;
        let mut admission = PodAdmission {
            core: self,
            id: id.clone(),
            uid: uid.clone(),
            admitted: false,
        };
        admission.allocate_pod(&pod).await?;
        admission.admitted = true;
        let active = ActivePod {
            uid: uid.clone(),
            pod: pod.clone(),
        };
        self.change_state(|state| state.pods.insert(id.clone(), active));
        self.save_checkpoint();
        // The containers start after the entries are saved: a failed start leaves the devices in
        // use.
        let mut containers = BTreeMap::new();
        for (container, _) in pod.in_order() {
            let granted = self.start_container(&id, &container.name).await?;
            containers.insert(container.name.clone(), granted);
        }
        Ok(AdmittedPod {
            pod: id,
            uid,
            containers,
        })
    }

    /// Starts a container of an admitted pod with the devices of its admission. Allocate is not
    /// called again: the kubelet keeps the answer in its checkpoint.
    pub(super) async fn start_container(
        &self,
        pod: &PodId,
        container: &str,
    ) -> Result<GrantedDevices, AdmissionError> {
        let unknown = || AdmissionError::Unknown {
            pod: pod.clone(),
            container: container.to_owned(),
        };
        let (granted, endpoints) = self.read_state(|state| {
            let active = state.pods.get(pod).ok_or_else(unknown)?;
            let mut all = active.pod.in_order();
            all.find(|(c, _)| c.name == container).ok_or_else(unknown)?;
            let granted = state.merge_granted(&active.uid, container);
            let endpoint = |resource| Some(state.resources.get(resource)?.endpoint.clone());
            let endpoints: BTreeMap<String, PluginEndpoint> = granted
                .devices
                .keys()
                .filter_map(|resource| Some((resource.clone(), endpoint(resource)?)))
                .collect();
            Ok((granted, endpoints))
        })?;
        // PreStartContainer precedes every start of the container, restarts included.
        for (resource, endpoint) in endpoints {
            let devices = &granted.devices[&resource];
            let started = pre_start(endpoint, devices).await;
            started.map_err(|message| AdmissionError::Start {
                container: container.to_owned(),
                message,
            })?;
        }
        Ok(granted)
    }

    /// Admits a pod again whose containers no longer run, as a kubelet does after a reboot of the
    /// node: all devices that it held must be listed and healthy.
    pub(super) async fn run_readmission(
        self: &Arc<Self>,
        pod: &PodId,
    ) -> Result<(), AdmissionError> {
        let _turn = self.admission.lock().await;
        let checked = self.change_state(|state| {
            let Some(active) = state.pods.get(pod) else {
                return Err(AdmissionError::Unknown {
                    pod: pod.clone(),
                    container: String::new(),
                });
            };
            let uid = active.uid.clone();
            // Same check as for a new pod that holds devices already (manager.go,
            // devicesToAllocate).
            let held = state.entries.iter().filter(|entry| entry.uid == uid);
            let checked = held
                .map(|entry| check_present(state, &entry.resource, &entry.device_ids()))
                .collect::<Result<Vec<_>, _>>();
            checked.map(|_| ()).map_err(|message| {
                state.pods.remove(pod);
                state.free_removed_pods();
                AdmissionError::Unexpected(message)
            })
        });
        self.save_checkpoint();
        checked
    }
}

// === impl PodAdmission ===

impl PodAdmission<'_> {
    async fn allocate_pod(&self, pod: &Pod) -> Result<(), AdmissionError> {
        let mut reusable: BTreeMap<String, DeviceIds> = BTreeMap::new();
        for (container, handed_on) in pod.in_order() {
            self.allocate_container(container, &reusable).await?;
            let held = self
                .core
                .read_state(|state| state.merge_granted(&self.uid, &container.name).devices);
            for (resource, ids) in held {
                let reusable = reusable.entry(resource).or_default();
                // Only ordinary init containers hand their devices on (manager.go, Allocate).
                if handed_on {
                    reusable.extend(ids);
                } else {
                    reusable.retain(|id| !ids.contains(id));
                }
            }
        }
        Ok(())
    }

    async fn allocate_container(
        &self,
        container: &PodContainer,
        reusable: &BTreeMap<String, DeviceIds>,
    ) -> Result<(), AdmissionError> {
        for (resource, count) in &container.requests {
            // A request of zero devices makes no call of the plugin.
            if *count == 0 {
                continue;
            }
            let need = DeviceNeed {
                container: &container.name,
                resource,
                count: *count,
            };
            let reusable = reusable.get(resource).cloned().unwrap_or_default();
            let done = self.allocate_resource(&need, &reusable).await;
            done.map_err(AdmissionError::Unexpected)?;
        }
        Ok(())
    }

    async fn allocate_resource(
        &self,
        need: &DeviceNeed<'_>,
        reusable: &DeviceIds,
    ) -> Result<(), String> {
        let choice = self
            .core
            .read_state(|state| need.choose_devices(state, reusable))?;
        let ids = match choice {
            DeviceChoice::Made(ids) => ids,
            DeviceChoice::Open { available, taken } => {
                self.choose_preferred(need, available, taken).await?
            }
        };
        let begun = Instant::now();
        // One request for each container and resource, as in the kubelet.
        let response = self.call_allocate(need, &ids).await?;
        self.core.change_state(|state| {
            state.entries.push(DeviceEntry {
                uid: self.uid.clone(),
                container: need.container.to_owned(),
                resource: need.resource.to_owned(),
                devices: state.by_node(need.resource, &ids),
                response: response.clone(),
            });
            state.record.allocations.push(Allocation {
                at: Instant::now(),
                took: begun.elapsed(),
                pod: self.id.clone(),
                container: need.container.to_owned(),
                resource: need.resource.to_owned(),
                devices: ids,
                response,
            });
        });
        Ok(())
    }

    /// Takes the preferred devices that are available, then others until the count is reached. A
    /// bad answer of the plugin is not an error, as in the kubelet.
    async fn choose_preferred(
        &self,
        need: &DeviceNeed<'_>,
        available: DeviceIds,
        taken: DeviceIds,
    ) -> Result<DeviceIds, String> {
        let preferred = self.ask_preferred(need, &available, &taken).await?;
        let missing = need.count - taken.len();
        let preferred: DeviceIds = preferred.into_iter().collect();
        let first: Vec<_> = preferred.intersection(&available).cloned().collect();
        let rest = available.difference(&preferred).cloned();
        let picked = first.into_iter().chain(rest).take(missing);
        Ok(picked.chain(taken).collect())
    }

    async fn ask_preferred(
        &self,
        need: &DeviceNeed<'_>,
        available: &DeviceIds,
        taken: &DeviceIds,
    ) -> Result<Vec<String>, String> {
        let endpoint = self.endpoint(need)?;
        // The plugin's option is asked once, at registration, and not before each call.
        if !endpoint.options.get_preferred_allocation_available {
            return Ok(Vec::new());
        }
        let size = i32::try_from(need.count).map_err(|_| "too many devices".to_owned())?;
        let all: DeviceIds = available.union(taken).cloned().collect();
        let request = PreferredAllocationRequest {
            container_requests: vec![ContainerPreferredAllocationRequest {
                available_device_ids: shuffled(&all),
                must_include_device_ids: shuffled(taken),
                allocation_size: size,
            }],
        };
        let answer = api(endpoint, need.resource)?
            .get_preferred_allocation(request)
            .await;
        let mut answers = answer
            .map_err(|status| {
                self.core.note_oversize(need.resource, &status);
                let words = wire::format_status(&status);
                format!("device plugin GetPreferredAllocation rpc failed with err: {words}")
            })?
            .into_inner()
            .container_responses;
        self.check_response_count(need, "GetPreferredAllocation", answers.len());
        // The kubelet reads the first response only.
        answers.truncate(1);
        let ids = answers.pop().map(|answer| answer.device_ids);
        let ids = ids.unwrap_or_default();
        if let Some(reason) = flaw(&ids, &all, taken, need.count) {
            self.note_breach(need, Breach::BadPreference { reason });
        }
        Ok(ids)
    }

    async fn call_allocate(
        &self,
        need: &DeviceNeed<'_>,
        ids: &DeviceIds,
    ) -> Result<ContainerAllocateResponse, String> {
        let request = AllocateRequest {
            container_requests: vec![ContainerAllocateRequest {
                device_ids: shuffled(ids),
            }],
        };
        let answer = api(self.endpoint(need)?, need.resource)?
            .allocate(request)
            .await;
        let answers = answer
            .map_err(|status| {
                self.core.note_oversize(need.resource, &status);
                wire::format_status(&status)
            })?
            .into_inner()
            .container_responses;
        self.check_response_count(need, "Allocate", answers.len());
        // An empty list of responses fails the pod's admission.
        let first = answers.into_iter().next();
        first.ok_or_else(|| "no containers return in allocation response".to_owned())
    }

    fn endpoint(&self, need: &DeviceNeed<'_>) -> Result<PluginEndpoint, String> {
        self.core.read_state(|state| {
            let resource = state.resources.get(need.resource);
            let endpoint = resource.map(|resource| resource.endpoint.clone());
            endpoint.ok_or_else(|| format!("unknown Device Plugin {}", need.resource))
        })
    }

    fn check_response_count(&self, need: &DeviceNeed<'_>, call: &'static str, count: usize) {
        if count != 1 {
            self.note_breach(need, Breach::ResponseCount { call, count });
        }
    }

    fn note_breach(&self, need: &DeviceNeed<'_>, breach: Breach) {
        self.core
            .change_state(|state| state.record.record_breach(need.resource, breach));
    }
}

impl Drop for PodAdmission<'_> {
    fn drop(&mut self) {
        if !self.admitted {
            self.core
                .change_state(|state| state.entries.retain(|entry| entry.uid != self.uid));
            self.core.save_checkpoint();
        }
    }
}

/// Checks that a pod may be admitted, and generates its uid.
fn enter(state: &mut KubeletState, id: &PodId) -> Result<String, AdmissionError> {
    if state.life.is_none() {
        return Err(AdmissionError::Stopped);
    }
    if state.pods.contains_key(id) {
        return Err(AdmissionError::Exists(id.clone()));
    }
    // Devices of pods that have gone are freed at the next admission.
    state.free_removed_pods();
    state.admitted += 1;
    let mut hash = DefaultHasher::new();
    id.hash(&mut hash);
    Ok(format!(
        "00000000-0000-4000-{:04x}-{:012x}",
        0x8000 | state.admitted & 0x0fff,
        hash.finish() >> 16
    ))
}

fn api(endpoint: PluginEndpoint, resource: &str) -> Result<DevicePluginClient<Channel>, String> {
    let live = endpoint.api.filter(|_| endpoint.stopped.is_none());
    live.ok_or_else(|| format!("endpoint {resource} has been stopped"))
}

async fn pre_start(endpoint: PluginEndpoint, devices: &DeviceIds) -> Result<(), String> {
    if !endpoint.options.pre_start_required {
        return Ok(());
    }
    let Some(mut api) = endpoint.api else {
        return Ok(());
    };
    let request = PreStartContainerRequest {
        device_ids: shuffled(devices),
    };
    let call = tokio::time::timeout(PRE_START_LIMIT, api.pre_start_container(request));
    let failed = |words| format!("device plugin PreStartContainer rpc failed with err: {words}");
    match call.await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(status)) => Err(failed(wire::format_status(&status))),
        Err(_) => Err(failed(
            "rpc error: code = DeadlineExceeded desc = context deadline exceeded".to_owned(),
        )),
    }
}
