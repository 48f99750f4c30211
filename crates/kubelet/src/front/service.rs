//! The five calls of a device plugin. Each reads the newest offer, and none but `PreStartContainer`
//! waits.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use config::Policy;
use futures_util::{Stream, StreamExt, stream};
use kubelet_api::{
    MESSAGE_LIMIT,
    deviceplugin::{
        AllocateRequest, AllocateResponse, CdiDevice, ContainerAllocateResponse,
        ContainerPreferredAllocationRequest, ContainerPreferredAllocationResponse,
        DevicePluginOptions, DeviceSpec, Empty, ListAndWatchResponse, Mount,
        PreStartContainerRequest, PreStartContainerResponse, PreferredAllocationRequest,
        PreferredAllocationResponse, device_plugin_server::DevicePlugin,
    },
};
use model::{DeviceId, Samples};
use place::GrantHistory;
use pool::Offer;
use prost::Message;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::{
    prepare::{Prepare, is_wanted, options},
    wait::wait_changed,
};
use crate::list::{ListTooLarge, build_list};

/// An offer with its device list, or the reason why the list cannot be sent.
#[derive(Debug)]
pub(crate) struct ServedOffer {
    pub(crate) offer: Arc<Offer>,
    pub(crate) list: Result<Arc<ListAndWatchResponse>, ListTooLarge>,
}

// The kubelet opens exactly one stream for each registration
// (pkg/kubelet/cm/devicemanager/plugin/v1beta1/client.go, `Run`). So the first one is the evidence;
// later ones come from other programs, such as debugging tools.
/// State of the kubelet's stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StreamState {
    /// Not opened yet.
    #[default]
    NotOpened,
    /// Open.
    Open,
    /// Opened and ended.
    Ended,
}

/// gRPC service of one registration.
#[derive(Debug)]
pub(crate) struct PluginService {
    served: watch::Receiver<Arc<ServedOffer>>,
    line: Arc<watch::Sender<StreamState>>,
    cancel: CancellationToken,
    shared: SharedByServices,
}

/// State that a resource's services share, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct SharedByServices {
    /// Times of the last grants. The lock is held only to copy or to update them.
    pub(crate) grant_history: Arc<Mutex<GrantHistory>>,
    pub(crate) prepare: Option<Arc<dyn Prepare>>,
    /// Newest samples, for placement by weights.
    pub(crate) samples: watch::Receiver<Samples>,
}

// An error of `Allocate` or `GetPreferredAllocation` fails the pod's admission
// (`UnexpectedAdmissionError`), and its message is in the pod's status.
/// Error of a call, for the kubelet and the pod's events.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("an allocation of {resource} is for no container")]
    NoContainer { resource: String },
    #[error("{size} of {resource} requested; the number must not be negative")]
    NegativeSize { resource: String, size: i32 },
    #[error(
        "the answer has {bytes} bytes and the kubelet takes at most {MESSAGE_LIMIT}; \
         request fewer devices of {resource} in one container"
    )]
    AnswerTooLarge { resource: String, bytes: usize },
    #[error("{id} is no device of {resource}: the kubelet asks again with one of the list")]
    NoDevice { resource: String, id: String },
    #[error("{resource}: {reason}")]
    NotPrepared { resource: String, reason: String },
    #[error(transparent)]
    List(#[from] ListTooLarge),
    #[error(transparent)]
    Prefer(#[from] place::Error),
    #[error(transparent)]
    Grant(#[from] grant::Error),
}

/// Guard in the kubelet's stream. Its drop sets the state of the stream to ended, for every way in
/// which a stream can end.
#[derive(Debug)]
struct StreamGuard(Option<Arc<watch::Sender<StreamState>>>);

// === impl ServedOffer ===

impl ServedOffer {
    /// Makes the device list of an offer. The list of the offer before is used again if the units
    /// are the same.
    pub(crate) fn new(offer: Arc<Offer>, before: Option<&Self>) -> Self {
        let list = match before {
            Some(before) if before.offer.units == offer.units => before.list.clone(),
            _ => build_list(&offer).map(Arc::new),
        };
        Self { offer, list }
    }
}

// === impl PluginService ===

impl PluginService {
    pub(crate) fn new(
        served: watch::Receiver<Arc<ServedOffer>>,
        line: Arc<watch::Sender<StreamState>>,
        cancel: CancellationToken,
        shared: SharedByServices,
    ) -> Self {
        Self {
            served,
            line,
            cancel,
            shared,
        }
    }

    fn newest_offer(&self) -> Arc<Offer> {
        Arc::clone(&self.served.borrow().offer)
    }

    fn lock_history(&self) -> MutexGuard<'_, GrantHistory> {
        // A panic of another holder of the lock leaves the times usable.
        let clock = &self.shared.grant_history;
        clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tonic::async_trait]
impl DevicePlugin for PluginService {
    async fn get_device_plugin_options(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<DevicePluginOptions>, Status> {
        Ok(Response::new(options(&self.newest_offer())))
    }

    type ListAndWatchStream =
        Pin<Box<dyn Stream<Item = Result<ListAndWatchResponse, Status>> + Send>>;

    async fn list_and_watch(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<Self::ListAndWatchStream>, Status> {
        if let Err(error) = &self.served.borrow().list {
            return Err(Error::from(error.clone()).into());
        }
        let hang_up = StreamGuard::pick_up(&self.line);
        let lists =
            stream_lists(self.served.clone()).take_until(self.cancel.clone().cancelled_owned());
        let lists = lists.map(move |list| {
            let _held = &hang_up;
            Ok(ListAndWatchResponse::clone(&list))
        });
        Ok(Response::new(Box::pin(lists)))
    }

    async fn get_preferred_allocation(
        &self,
        request: Request<PreferredAllocationRequest>,
    ) -> Result<Response<PreferredAllocationResponse>, Status> {
        let offer = self.newest_offer();
        let requests = request.into_inner().container_requests;
        let clock = self.lock_history().clone();
        let samples = self.shared.samples.borrow();
        let answers = requests
            .iter()
            .map(|request| prefer_units(&offer, request, &clock, &samples));
        let answers: Result<_, Error> = answers.collect();
        Ok(Response::new(PreferredAllocationResponse {
            container_responses: answers?,
        }))
    }

    async fn allocate(
        &self,
        request: Request<AllocateRequest>,
    ) -> Result<Response<AllocateResponse>, Status> {
        let (offer, request) = (self.newest_offer(), request.into_inner());
        let answer = grant_containers(&offer, &request)?;
        record_grants(&offer, &request, &mut self.lock_history());
        Ok(Response::new(answer))
    }

    async fn pre_start_container(
        &self,
        request: Request<PreStartContainerRequest>,
    ) -> Result<Response<PreStartContainerResponse>, Status> {
        let offer = self.newest_offer();
        if let Some(prepare) = self.shared.prepare.as_ref().filter(|_| is_wanted(&offer)) {
            let devices = find_devices(&offer, &request.into_inner().device_ids)?;
            let resource = offer.resource.to_string();
            let prepared = prepare.prepare_devices(offer, devices).await;
            prepared.map_err(|reason| Error::NotPrepared { resource, reason })?;
        }
        Ok(Response::new(PreStartContainerResponse {}))
    }
}

// === impl StreamGuard ===

impl StreamGuard {
    fn pick_up(line: &Arc<watch::Sender<StreamState>>) -> Self {
        let first = line.send_if_modified(|line| {
            let first = *line == StreamState::NotOpened;
            if first {
                *line = StreamState::Open;
            }
            first
        });
        Self(first.then(|| Arc::clone(line)))
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        if let Some(line) = &self.0 {
            line.send_replace(StreamState::Ended);
        }
    }
}

// === impl Status ===

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::NoContainer { .. }
            | Error::NegativeSize { .. }
            | Error::Prefer(
                place::Error::TooManyRequired { .. } | place::Error::RequiredNotAvailable { .. },
            )
            | Error::Grant(
                grant::Error::Empty { .. }
                | grant::Error::Duplicate { .. }
                | grant::Error::OnePerRequest { .. },
            ) => Self::invalid_argument(message),
            Error::Prefer(place::Error::TooFew { .. })
            | Error::Grant(grant::Error::Oversized { .. }) => Self::out_of_range(message),
            Error::NoDevice { .. } | Error::Grant(grant::Error::Unknown { .. }) => {
                Self::not_found(message)
            }
            // `FAILED_PRECONDITION`: the same request can succeed when other cards are free.
            Error::NotPrepared { .. }
            | Error::Prefer(
                place::Error::TooFewCards { .. } | place::Error::RequiredTogether { .. },
            )
            | Error::Grant(grant::Error::NotDistinct { .. } | grant::Error::Unhealthy { .. }) => {
                Self::failed_precondition(message)
            }
            Error::AnswerTooLarge { .. } | Error::List(_) => Self::resource_exhausted(message),
        }
    }
}

// Each message replaces the kubelet's whole list (pkg/kubelet/cm/devicemanager/manager.go,
// `PluginListAndWatchReceiver`), so an equal list is not sent again.
/// Streams the newest list at once, then each list that differs from the last one sent. A list over
/// the size limit is skipped: the kubelet keeps the last one.
fn stream_lists(
    mut served: watch::Receiver<Arc<ServedOffer>>,
) -> impl Stream<Item = Arc<ListAndWatchResponse>> {
    served.mark_changed();
    let sent: Option<Arc<ListAndWatchResponse>> = None;
    stream::unfold((served, sent), |(mut served, sent)| async move {
        loop {
            wait_changed(&mut served).await;
            let newest = served.borrow_and_update().list.clone();
            match (newest, &sent) {
                (Ok(list), Some(sent)) if *sent == list => {}
                (Ok(list), _) => return Some((Arc::clone(&list), (served, Some(list)))),
                (Err(_), _) => {}
            }
        }
    })
}

/// Chooses the preferred units for one container.
fn prefer_units(
    offer: &Offer,
    request: &ContainerPreferredAllocationRequest,
    clock: &GrantHistory,
    samples: &Samples,
) -> Result<ContainerPreferredAllocationResponse, Error> {
    let size = usize::try_from(request.allocation_size).map_err(|_| Error::NegativeSize {
        resource: offer.resource.to_string(),
        size: request.allocation_size,
    })?;
    let wanted = place::PreferRequest {
        available: &request.available_device_ids,
        required: &request.must_include_device_ids,
        size,
        clock,
        samples,
    };
    let ids = place::prefer_at(offer, &wanted)?;
    Ok(ContainerPreferredAllocationResponse {
        device_ids: ids.iter().map(ToString::to_string).collect(),
    })
}

/// Grants the requested units of each container.
fn grant_containers(offer: &Offer, request: &AllocateRequest) -> Result<AllocateResponse, Error> {
    // The kubelet sends exactly one container request and uses the first answer
    // (pkg/kubelet/cm/devicemanager/manager.go, `allocateContainerResources`). A request without
    // containers gets an error that says so.
    if request.container_requests.is_empty() {
        return Err(Error::NoContainer {
            resource: offer.resource.to_string(),
        });
    }
    let containers = request.container_requests.iter();
    let answer = AllocateResponse {
        container_responses: containers
            .map(|container| {
                grant::grant_ids(offer, &container.device_ids).map(to_container_response)
            })
            .collect::<Result<_, _>>()?,
    };
    match answer.encoded_len() {
        bytes if bytes > MESSAGE_LIMIT => Err(Error::AnswerTooLarge {
            resource: offer.resource.to_string(),
            bytes,
        }),
        _ => Ok(answer),
    }
}

/// Finds the devices of the unit ids, each device once.
fn find_devices(offer: &Offer, ids: &[String]) -> Result<Vec<DeviceId>, Error> {
    let device = |id: &String| match offer.unit(id) {
        Some(unit) => Ok(unit.device.clone()),
        None => Err(Error::NoDevice {
            resource: offer.resource.to_string(),
            id: id.clone(),
        }),
    };
    let mut devices = ids.iter().map(device).collect::<Result<Vec<_>, _>>()?;
    devices.sort();
    devices.dedup();
    Ok(devices)
}

/// Records the granted cards, for the placement policy `round-robin` only.
fn record_grants(offer: &Offer, request: &AllocateRequest, clock: &mut GrantHistory) {
    if offer.pool.placement.policy != Policy::RoundRobin {
        return;
    }
    let ids = request
        .container_requests
        .iter()
        .flat_map(|c| &c.device_ids);
    let units = ids.filter_map(|id| offer.unit(id));
    let cards = units.filter_map(|unit| Some(offer.entry_of_unit(unit)?.device.card_id()));
    clock.record_grant(cards);
}

/// Makes the answer for one container. The API has no field for hooks and groups; [`grant::handover_notes`]
/// tells the operator which ones a container does not get.
fn to_container_response(grant: rules::Grant) -> ContainerAllocateResponse {
    let mounts = grant.edits.mounts.into_iter().map(|mount| Mount {
        read_only: mount.is_read_only(),
        container_path: mount.container_path,
        host_path: mount.host_path,
    });
    let nodes = grant.edits.device_nodes.into_iter();
    let devices = nodes.map(|node| DeviceSpec {
        host_path: node.outside().to_owned(),
        container_path: node.path,
        permissions: node.permissions.unwrap_or_else(|| "rw".to_owned()),
    });
    let names = grant.cdi_devices.into_iter();
    ContainerAllocateResponse {
        envs: grant.edits.env.into_iter().collect(),
        mounts: mounts.collect(),
        devices: devices.collect(),
        annotations: grant.annotations.into_iter().collect(),
        cdi_devices: names.map(|name| CdiDevice { name }).collect(),
    }
}
