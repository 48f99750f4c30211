//! The five calls of a device plugin. Each reads the newest offer and waits for nothing.

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
use place::Clock;
use pool::Offer;
use prost::Message;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::{
    prepare::{Prepare, is_wanted, options},
    wait::changed,
};
use crate::list::{TooLarge, list};

/// An offer with the list that is made of it.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) offer: Arc<Offer>,
    pub(crate) list: Result<Arc<ListAndWatchResponse>, TooLarge>,
}

/// What became of the kubelet's stream. The kubelet opens exactly one for each registration, so
/// the first one is the evidence; later ones are somebody looking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Line {
    /// Not opened yet.
    #[default]
    Silent,
    /// Open.
    Open,
    /// Opened and ended.
    Ended,
}

/// The service of one registration.
#[derive(Debug)]
pub(crate) struct Service {
    served: watch::Receiver<Arc<Served>>,
    line: Arc<watch::Sender<Line>>,
    cancel: CancellationToken,
    shared: Shared,
}

/// What the services of a resource share, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// Held for a moment only, to read or to note.
    pub(crate) clock: Arc<Mutex<Clock>>,
    pub(crate) prepare: Option<Arc<dyn Prepare>>,
    /// The newest samples, for placement by weights.
    pub(crate) samples: watch::Receiver<Samples>,
}

/// Why a call is refused.
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
    List(#[from] TooLarge),
    #[error(transparent)]
    Prefer(#[from] place::Error),
    #[error(transparent)]
    Grant(#[from] grant::Error),
}

/// Tells the registration that the kubelet's stream ended, however it ended.
#[derive(Debug)]
struct HangUp(Option<Arc<watch::Sender<Line>>>);

// === impl Served ===

impl Served {
    /// Makes the list of an offer; takes over the one of the offer before if nothing in it changed.
    pub(crate) fn new(offer: Arc<Offer>, before: Option<&Self>) -> Self {
        let list = match before {
            Some(before) if before.offer.units == offer.units => before.list.clone(),
            _ => list(&offer).map(Arc::new),
        };
        Self { offer, list }
    }
}

// === impl Service ===

impl Service {
    pub(crate) fn new(
        served: watch::Receiver<Arc<Served>>,
        line: Arc<watch::Sender<Line>>,
        cancel: CancellationToken,
        shared: Shared,
    ) -> Self {
        Self {
            served,
            line,
            cancel,
            shared,
        }
    }

    fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.served.borrow().offer)
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        // A clock that somebody panicked over is still a clock.
        let clock = &self.shared.clock;
        clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tonic::async_trait]
impl DevicePlugin for Service {
    async fn get_device_plugin_options(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<DevicePluginOptions>, Status> {
        Ok(Response::new(options(&self.offer())))
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
        let hang_up = HangUp::pick_up(&self.line);
        let lists = lists(self.served.clone()).take_until(self.cancel.clone().cancelled_owned());
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
        let offer = self.offer();
        let requests = request.into_inner().container_requests;
        let clock = self.clock().clone();
        let samples = self.shared.samples.borrow();
        let answers = requests
            .iter()
            .map(|request| prefer(&offer, request, &clock, &samples));
        let answers: Result<_, Error> = answers.collect();
        Ok(Response::new(PreferredAllocationResponse {
            container_responses: answers?,
        }))
    }

    async fn allocate(
        &self,
        request: Request<AllocateRequest>,
    ) -> Result<Response<AllocateResponse>, Status> {
        let (offer, request) = (self.offer(), request.into_inner());
        let answer = allocate(&offer, &request)?;
        note(&offer, &request, &mut self.clock());
        Ok(Response::new(answer))
    }

    async fn pre_start_container(
        &self,
        request: Request<PreStartContainerRequest>,
    ) -> Result<Response<PreStartContainerResponse>, Status> {
        let offer = self.offer();
        if let Some(prepare) = self.shared.prepare.as_ref().filter(|_| is_wanted(&offer)) {
            let devices = devices(&offer, &request.into_inner().device_ids)?;
            let resource = offer.resource.to_string();
            let prepared = prepare.prepare(offer, devices).await;
            prepared.map_err(|reason| Error::NotPrepared { resource, reason })?;
        }
        Ok(Response::new(PreStartContainerResponse {}))
    }
}

// === impl HangUp ===

impl HangUp {
    fn pick_up(line: &Arc<watch::Sender<Line>>) -> Self {
        let first = line.send_if_modified(|line| {
            let first = *line == Line::Silent;
            if first {
                *line = Line::Open;
            }
            first
        });
        Self(first.then(|| Arc::clone(line)))
    }
}

impl Drop for HangUp {
    fn drop(&mut self) {
        if let Some(line) = &self.0 {
            line.send_replace(Line::Ended);
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
            // With other cards free, the same request can be met.
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

/// The newest list at once, then each one that differs from what was sent before. A list that is
/// too large is passed over: the kubelet keeps the one before.
fn lists(
    mut served: watch::Receiver<Arc<Served>>,
) -> impl Stream<Item = Arc<ListAndWatchResponse>> {
    served.mark_changed();
    let sent: Option<Arc<ListAndWatchResponse>> = None;
    stream::unfold((served, sent), |(mut served, sent)| async move {
        loop {
            changed(&mut served).await;
            let newest = served.borrow_and_update().list.clone();
            match (newest, &sent) {
                (Ok(list), Some(sent)) if *sent == list => {}
                (Ok(list), _) => return Some((Arc::clone(&list), (served, Some(list)))),
                (Err(_), _) => {}
            }
        }
    })
}

fn prefer(
    offer: &Offer,
    request: &ContainerPreferredAllocationRequest,
    clock: &Clock,
    samples: &Samples,
) -> Result<ContainerPreferredAllocationResponse, Error> {
    let size = usize::try_from(request.allocation_size).map_err(|_| Error::NegativeSize {
        resource: offer.resource.to_string(),
        size: request.allocation_size,
    })?;
    let wanted = place::Request {
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

fn allocate(offer: &Offer, request: &AllocateRequest) -> Result<AllocateResponse, Error> {
    if request.container_requests.is_empty() {
        return Err(Error::NoContainer {
            resource: offer.resource.to_string(),
        });
    }
    let containers = request.container_requests.iter();
    let answer = AllocateResponse {
        container_responses: containers
            .map(|container| grant::grant(offer, &container.device_ids).map(answer))
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

/// The devices behind ids, each once.
fn devices(offer: &Offer, ids: &[String]) -> Result<Vec<DeviceId>, Error> {
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

/// Notes which cards were granted, where placement goes round.
fn note(offer: &Offer, request: &AllocateRequest, clock: &mut Clock) {
    if offer.pool.placement.policy != Policy::RoundRobin {
        return;
    }
    let ids = request
        .container_requests
        .iter()
        .flat_map(|c| &c.device_ids);
    let units = ids.filter_map(|id| offer.unit(id));
    let cards = units.filter_map(|unit| Some(offer.entry(unit)?.device.card()));
    clock.grant(cards);
}

/// The answer for one container. Hooks and groups have no place in it; [`grant::notes`] says so.
fn answer(grant: rules::Grant) -> ContainerAllocateResponse {
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
