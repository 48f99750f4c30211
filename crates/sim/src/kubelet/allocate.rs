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
    Core,
    choose::{Choice, Ids, Need, flaw, present, shuffled},
    pod::{Admitted, Container, Granted, Id, Pod},
    record::{Allocation, Breach},
    state::{Active, Endpoint, Entry, State},
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
    Exists(Id),
    /// No such pod or container is on the node.
    #[error("no container {container} in a pod {pod}")]
    Unknown {
        /// The pod.
        pod: Id,
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
struct Admission<'a> {
    core: &'a Arc<Core>,
    id: Id,
    uid: String,
    admitted: bool,
}

// === impl Core ===

impl Core {
    pub(super) async fn admit(self: &Arc<Self>, pod: Pod) -> Result<Admitted, AdmissionError> {
        // The kubelet admits one pod at a time and has no deadline for Allocate: a plugin that
        // hangs there stops all admissions.
        let _turn = self.admission.lock().await;
        let id = pod.id();
        let uid = self.change(|state| enter(state, &id))?;
        let mut admission = Admission {
            core: self,
            id: id.clone(),
            uid: uid.clone(),
            admitted: false,
        };
        admission.containers(&pod).await?;
        admission.admitted = true;
        let active = Active {
            uid: uid.clone(),
            pod: pod.clone(),
        };
        self.change(|state| state.pods.insert(id.clone(), active));
        self.save();
        // The containers start after the entries are saved: a failed start leaves the devices in
        // use.
        let mut containers = BTreeMap::new();
        for (container, _) in pod.in_order() {
            let granted = self.start_container(&id, &container.name).await?;
            containers.insert(container.name.clone(), granted);
        }
        Ok(Admitted {
            pod: id,
            uid,
            containers,
        })
    }

    /// Starts a container of an admitted pod with the devices of its admission. Allocate is not
    /// called again: the kubelet keeps the answer in its checkpoint.
    pub(super) async fn start_container(
        &self,
        pod: &Id,
        container: &str,
    ) -> Result<Granted, AdmissionError> {
        let unknown = || AdmissionError::Unknown {
            pod: pod.clone(),
            container: container.to_owned(),
        };
        let (granted, endpoints) = self.look(|state| {
            let active = state.pods.get(pod).ok_or_else(unknown)?;
            let mut all = active.pod.in_order();
            all.find(|(c, _)| c.name == container).ok_or_else(unknown)?;
            let granted = state.granted(&active.uid, container);
            let endpoint = |resource| Some(state.resources.get(resource)?.endpoint.clone());
            let endpoints: BTreeMap<String, Endpoint> = granted
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
    pub(super) async fn readmit(self: &Arc<Self>, pod: &Id) -> Result<(), AdmissionError> {
        let _turn = self.admission.lock().await;
        let checked = self.change(|state| {
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
                .map(|entry| present(state, &entry.resource, &entry.ids()))
                .collect::<Result<Vec<_>, _>>();
            checked.map(|_| ()).map_err(|message| {
                state.pods.remove(pod);
                state.prune();
                AdmissionError::Unexpected(message)
            })
        });
        self.save();
        checked
    }
}

// === impl Admission ===

impl Admission<'_> {
    async fn containers(&self, pod: &Pod) -> Result<(), AdmissionError> {
        let mut reusable: BTreeMap<String, Ids> = BTreeMap::new();
        for (container, handed_on) in pod.in_order() {
            self.container(container, &reusable).await?;
            let held = self
                .core
                .look(|state| state.granted(&self.uid, &container.name).devices);
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

    async fn container(
        &self,
        container: &Container,
        reusable: &BTreeMap<String, Ids>,
    ) -> Result<(), AdmissionError> {
        for (resource, count) in &container.requests {
            // A request of zero devices makes no call of the plugin.
            if *count == 0 {
                continue;
            }
            let need = Need {
                container: &container.name,
                resource,
                count: *count,
            };
            let reusable = reusable.get(resource).cloned().unwrap_or_default();
            let done = self.resource(&need, &reusable).await;
            done.map_err(AdmissionError::Unexpected)?;
        }
        Ok(())
    }

    async fn resource(&self, need: &Need<'_>, reusable: &Ids) -> Result<(), String> {
        let choice = self.core.look(|state| need.choose(state, reusable))?;
        let ids = match choice {
            Choice::Made(ids) => ids,
            Choice::Open { available, taken } => self.prefer(need, available, taken).await?,
        };
        let begun = Instant::now();
        // One request for each container and resource, as in the kubelet.
        let response = self.allocate(need, &ids).await?;
        self.core.change(|state| {
            state.entries.push(Entry {
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
    async fn prefer(&self, need: &Need<'_>, available: Ids, taken: Ids) -> Result<Ids, String> {
        let preferred = self.ask_preferred(need, &available, &taken).await?;
        let missing = need.count - taken.len();
        let preferred: Ids = preferred.into_iter().collect();
        let first: Vec<_> = preferred.intersection(&available).cloned().collect();
        let rest = available.difference(&preferred).cloned();
        let picked = first.into_iter().chain(rest).take(missing);
        Ok(picked.chain(taken).collect())
    }

    async fn ask_preferred(
        &self,
        need: &Need<'_>,
        available: &Ids,
        taken: &Ids,
    ) -> Result<Vec<String>, String> {
        let endpoint = self.endpoint(need)?;
        // The plugin's option is asked once, at registration, and not before each call.
        if !endpoint.options.get_preferred_allocation_available {
            return Ok(Vec::new());
        }
        let size = i32::try_from(need.count).map_err(|_| "too many devices".to_owned())?;
        let all: Ids = available.union(taken).cloned().collect();
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
                self.core.oversize(need.resource, &status);
                let words = wire::words(&status);
                format!("device plugin GetPreferredAllocation rpc failed with err: {words}")
            })?
            .into_inner()
            .container_responses;
        self.count(need, "GetPreferredAllocation", answers.len());
        // The kubelet reads the first response only.
        answers.truncate(1);
        let ids = answers.pop().map(|answer| answer.device_ids);
        let ids = ids.unwrap_or_default();
        if let Some(reason) = flaw(&ids, &all, taken, need.count) {
            self.breach(need, Breach::BadPreference { reason });
        }
        Ok(ids)
    }

    async fn allocate(
        &self,
        need: &Need<'_>,
        ids: &Ids,
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
                self.core.oversize(need.resource, &status);
                wire::words(&status)
            })?
            .into_inner()
            .container_responses;
        self.count(need, "Allocate", answers.len());
        // An empty list of responses fails the pod's admission.
        let first = answers.into_iter().next();
        first.ok_or_else(|| "no containers return in allocation response".to_owned())
    }

    fn endpoint(&self, need: &Need<'_>) -> Result<Endpoint, String> {
        self.core.look(|state| {
            let resource = state.resources.get(need.resource);
            let endpoint = resource.map(|resource| resource.endpoint.clone());
            endpoint.ok_or_else(|| format!("unknown Device Plugin {}", need.resource))
        })
    }

    fn count(&self, need: &Need<'_>, call: &'static str, count: usize) {
        if count != 1 {
            self.breach(need, Breach::ResponseCount { call, count });
        }
    }

    fn breach(&self, need: &Need<'_>, breach: Breach) {
        self.core
            .change(|state| state.record.breach(need.resource, breach));
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if !self.admitted {
            self.core
                .change(|state| state.entries.retain(|entry| entry.uid != self.uid));
            self.core.save();
        }
    }
}

/// Checks that a pod may be admitted, and generates its uid.
fn enter(state: &mut State, id: &Id) -> Result<String, AdmissionError> {
    if state.life.is_none() {
        return Err(AdmissionError::Stopped);
    }
    if state.pods.contains_key(id) {
        return Err(AdmissionError::Exists(id.clone()));
    }
    // Devices of pods that have gone are freed at the next admission.
    state.prune();
    state.admitted += 1;
    let mut hash = DefaultHasher::new();
    id.hash(&mut hash);
    Ok(format!(
        "00000000-0000-4000-{:04x}-{:012x}",
        0x8000 | state.admitted & 0x0fff,
        hash.finish() >> 16
    ))
}

fn api(endpoint: Endpoint, resource: &str) -> Result<DevicePluginClient<Channel>, String> {
    let live = endpoint.api.filter(|_| endpoint.stopped.is_none());
    live.ok_or_else(|| format!("endpoint {resource} has been stopped"))
}

async fn pre_start(endpoint: Endpoint, devices: &Ids) -> Result<(), String> {
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
        Ok(Err(status)) => Err(failed(wire::words(&status))),
        Err(_) => Err(failed(
            "rpc error: code = DeadlineExceeded desc = context deadline exceeded".to_owned(),
        )),
    }
}
