//! Device plugin front end: one plugin for each resource of the offers, kept registered with the
//! kubelet until cancelled. No error from outside ends the front end, and an error of one plugin
//! does not affect the others.

mod evidence;
mod folder;
mod known;
mod pace;
mod plugin;
mod prepare;
mod ready;
mod register;
mod server;
mod service;
mod wait;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use api::Phase;
use host::watch::WatchMode;
use model::{ResourceName, Samples};
use pool::{Offer, Offers};
use tokio::{
    sync::watch,
    task::{Id, JoinError, JoinSet},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

pub use self::prepare::{Prepare, Preparing};
pub(crate) use self::service::ServedOffer;
use self::{
    folder::FolderView,
    known::AllocatableAnswer,
    plugin::{ResourceMemory, ResourcePlugin},
};
use crate::{
    pod_resources::PodResourcesClient,
    socket::SocketNames,
    status::{ResourceRow, Status},
};

// Every plugin drains its connections in `Settings::drain` and then cuts them off, so this limit is
// reached only by a defect. It is below the two seconds that `run` promises.
/// Time limit for all plugins to end at shutdown.
const FAREWELL: Duration = Duration::from_millis(1500);

/// Paths of the kubelet, and time limits for the calls to it and from it.
#[derive(Clone, Debug)]
pub struct FrontSettings {
    // The kubelet's code has this path as a constant: it does not follow `--root-dir`. The socket of
    // the pod resources API does, hence two settings (kubernetes issue 120626).
    /// Device plugin folder, with `kubelet.sock` and our sockets.
    pub dir: PathBuf,
    /// Path of the pod resources socket; `None` if it is not used. The socket may be absent.
    pub pod_resources: Option<PathBuf>,
    /// Use of inotify. Without it, changes of the folder are noticed at the next poll.
    pub events: WatchMode,
    /// Time between two polls of the folder.
    pub poll: Duration,
    // Inside `Register` the kubelet dials the plugin, for up to 10 s
    // (pkg/kubelet/cm/devicemanager/plugin/v1beta1/client.go, `dial`). The limit must be longer.
    /// Time limit for the kubelet's answer to a registration.
    pub register_limit: Duration,
    /// Time limit for the kubelet to open its stream after that answer.
    pub stream_limit: Duration,
    /// Shortest time between two registrations of a resource.
    pub spacing: Duration,
    /// Longest time between two attempts.
    pub backoff: Duration,
    /// Time between two calls to the pod resources socket.
    pub check: Duration,
    /// Time limit for our connections to end by themselves.
    pub drain: Duration,
    /// Time that a resource without an offer stays registered, with an empty list.
    pub retire_after: Duration,
    /// False if plugins serve and do not register.
    pub register: bool,
    /// Code that prepares devices before a container starts, for pools with `preStart`.
    pub prepare: Option<Arc<dyn Prepare>>,
    /// Newest samples, for placement by weights.
    pub samples: watch::Receiver<Samples>,
}

/// State of the running front end.
#[derive(Debug)]
struct FrontEnd {
    settings: Arc<FrontSettings>,
    names: SocketNames,
    board: Arc<watch::Sender<Status>>,
    folder: watch::Receiver<FolderView>,
    answers: watch::Receiver<Option<AllocatableAnswer>>,
    plugins: BTreeMap<ResourceName, PluginSlot>,
    /// Facts about each resource that outlive its plugins.
    memory: BTreeMap<ResourceName, ResourceMemory>,
    tasks: JoinSet<()>,
    cancel: CancellationToken,
}

/// A started plugin, and the front end's handles to it.
#[derive(Debug)]
struct PluginSlot {
    /// Copy of the plugin, to start it again after a panic.
    plugin: ResourcePlugin,
    served: watch::Sender<Arc<ServedOffer>>,
    task: Id,
    cancel: CancellationToken,
    /// Time since when its resource has no offer.
    vacant: Option<Instant>,
}

/// Keeps every resource of the offers registered with the kubelet, until cancelled.
///
/// Ends within two seconds of the cancellation, even if a peer does not answer, and removes its
/// sockets. If the sender of the offers ends, the last offers stay in force.
pub async fn run_front_end(
    settings: FrontSettings,
    offers: watch::Receiver<Offers>,
    status: watch::Sender<Status>,
    cancel: CancellationToken,
) {
    let (seen, folder) = watch::channel(FolderView::read_folder(&settings.dir));
    let (told, answers) = watch::channel(None);
    // An earlier front end may have left rows of resources that have no offer now. No plugin of this
    // one would remove them.
    status.send_modify(|status| status.retain_offered(&offers.borrow()));
    let mut front = FrontEnd {
        names: SocketNames::new(&settings.dir),
        settings: Arc::new(settings.clone()),
        board: Arc::new(status),
        folder: folder.clone(),
        answers,
        plugins: BTreeMap::new(),
        memory: BTreeMap::new(),
        tasks: JoinSet::new(),
        cancel,
    };
    let watching = folder::watch_folder(settings.dir, settings.events, settings.poll, seen);
    let asking = ask_kubelet(
        settings.pod_resources,
        settings.check,
        front.board.subscribe(),
        told,
    );
    let sweeping = sweep_folder(front.names.clone(), folder);
    // The three watchers run in this task: they are cheap and must end with the front end.
    tokio::select! {
        biased;
        () = front.follow_offers(offers) => {}
        _ = async { tokio::join!(watching, asking, sweeping) } => {}
    }
    front.shut_down().await;
}

// === impl FrontSettings ===

impl FrontSettings {
    /// Settings with the default times, for the kubelet with the device plugin folder `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            pod_resources: None,
            events: WatchMode::Inotify,
            poll: Duration::from_secs(1),
            register_limit: Duration::from_secs(12),
            stream_limit: Duration::from_secs(10),
            spacing: Duration::from_secs(1),
            backoff: Duration::from_secs(30),
            check: Duration::from_secs(10),
            drain: Duration::from_millis(300),
            retire_after: Duration::from_secs(30),
            register: true,
            prepare: None,
            samples: watch::Sender::default().subscribe(),
        }
    }
}

// === impl FrontEnd ===

impl FrontEnd {
    /// Applies each new set of offers until cancelled.
    async fn follow_offers(&mut self, mut offers: watch::Receiver<Offers>) {
        let cancel = self.cancel.clone();
        let mut ended = false;
        offers.mark_changed();
        loop {
            let retirement = self.retirement();
            tokio::select! {
                () = cancel.cancelled() => return,
                () = sleep_until(retirement.unwrap_or_else(Instant::now)), if retirement.is_some() => {
                    self.retire_plugins();
                }
                changed = offers.changed(), if !ended => match changed {
                    Ok(()) => {
                        let newest = Arc::clone(&offers.borrow_and_update());
                        self.apply_offers(&newest);
                    }
                    // The sender of offers has ended. The last offers stay in force.
                    Err(_) => ended = true,
                },
                Some(ended) = self.tasks.join_next() => if let Err(error) = ended {
                    self.revive(&error);
                },
            }
        }
    }

    /// Passes each offer on to its plugin. A resource without an offer keeps its plugin for the time
    /// `Settings::retire`, with an empty list.
    fn apply_offers(&mut self, offers: &Offers) {
        // With an empty list the capacity is zero at once. If the stream just ended, the kubelet
        // would keep the capacity, with no healthy device, for five minutes
        // (pkg/kubelet/cm/devicemanager/endpoint.go, `endpointStopGracePeriod`).
        for offer in offers.iter() {
            match self.plugins.get_mut(&offer.resource) {
                Some(seat) => {
                    seat.vacant = None;
                    seat.publish_offer(Arc::clone(offer));
                }
                None => self.add_plugin(Arc::clone(offer)),
            }
        }
        for (resource, seat) in &mut self.plugins {
            if !offers.iter().any(|offer| offer.resource == *resource) {
                seat.vacate();
            }
        }
    }

    /// Time at which the next resource without an offer is unregistered.
    fn retirement(&self) -> Option<Instant> {
        let vacant = self.plugins.values().filter_map(|seat| seat.vacant).min()?;
        Some(vacant + self.settings.retire_after)
    }

    /// Ends the plugins that had no offer for the time `Settings::retire`.
    fn retire_plugins(&mut self) {
        let limit = self.settings.retire_after;
        self.plugins.retain(|resource, seat| {
            let over = seat.vacant.is_some_and(|since| since.elapsed() >= limit);
            if over {
                tracing::info!(%resource, "the resource is offered no more and goes");
                seat.cancel.cancel();
                seat.plugin.row.remove_row();
            }
            !over
        });
    }

    fn add_plugin(&mut self, offer: Arc<Offer>) {
        let resource = offer.resource.clone();
        let (served, receiver) = watch::channel(Arc::new(ServedOffer::new(offer, None)));
        // An earlier plugin of the resource may still be closing its stream. Up to 1.36 the kubelet
        // takes the end of that stream for the end of the new one (kubernetes PR 135437).
        let pause = match self.memory.contains_key(&resource) {
            true => self.settings.spacing,
            false => Duration::ZERO,
        };
        let plugin = ResourcePlugin {
            resource: resource.clone(),
            settings: Arc::clone(&self.settings),
            names: self.names.clone(),
            served: receiver,
            folder: self.folder.clone(),
            answers: self.answers.clone(),
            row: ResourceRow::new(Arc::clone(&self.board), resource.clone()),
            kept: self.memory.entry(resource.clone()).or_default().clone(),
        };
        plugin.row.set_offer(&served.borrow());
        let cancel = self.cancel.child_token();
        let task = self.spawn_plugin(plugin.clone(), cancel.clone(), pause);
        let seat = PluginSlot {
            plugin,
            served,
            task,
            cancel,
            vacant: None,
        };
        self.plugins.insert(resource, seat);
    }

    fn spawn_plugin(
        &mut self,
        plugin: ResourcePlugin,
        cancel: CancellationToken,
        pause: Duration,
    ) -> Id {
        let life = async move {
            sleep(pause).await;
            plugin.keep_registered(cancel).await;
        };
        self.tasks.spawn(life).id()
    }

    /// Starts a plugin again that panicked. A panic is a defect of ours and must not take the
    /// node's devices away.
    fn revive(&mut self, error: &JoinError) {
        let mut seats = self.plugins.values();
        let Some(seat) = seats.find(|seat| seat.task == error.id()) else {
            return;
        };
        let plugin = seat.plugin.clone();
        let message = format!("internal error, starting again: {error}");
        plugin.row.set_phase(Phase::Failed, &message, None);
        let (resource, cancel) = (plugin.resource.clone(), seat.cancel.clone());
        let task = self.spawn_plugin(plugin, cancel, self.settings.spacing);
        if let Some(seat) = self.plugins.get_mut(&resource) {
            seat.task = task;
        }
    }

    /// Waits for the plugins to end, and aborts those that do not end in time.
    async fn shut_down(mut self) {
        self.cancel.cancel();
        let ending = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(FAREWELL, ending).await.is_err() {
            tracing::warn!("device plugins did not end in time and are cut off");
            self.tasks.shutdown().await;
        }
    }
}

// === impl PluginSlot ===

impl PluginSlot {
    fn publish_offer(&self, offer: Arc<Offer>) {
        let served = Arc::new(ServedOffer::new(offer, Some(&self.served.borrow())));
        self.plugin.row.set_offer(&served);
        self.served.send_replace(served);
    }

    fn vacate(&mut self) {
        self.vacant.get_or_insert_with(Instant::now);
        let offer = Arc::clone(&self.served.borrow().offer);
        if !offer.units.is_empty() {
            self.publish_offer(Arc::new(Offer {
                units: Vec::new(),
                ..Offer::clone(&offer)
            }));
        }
    }
}

async fn ask_kubelet(
    socket: Option<PathBuf>,
    pause: Duration,
    status: watch::Receiver<Status>,
    answers: watch::Sender<Option<AllocatableAnswer>>,
) {
    if let Some(socket) = socket {
        known::poll_allocatable(
            PodResourcesClient::new(socket, pause / 2),
            pause,
            status,
            answers,
        )
        .await;
    }
}

/// Removes the sockets that dead processes left, as soon as the folder exists.
async fn sweep_folder(names: SocketNames, folder: watch::Receiver<FolderView>) {
    wait::wait_until(&folder, |view| view.exists).await;
    names.remove_dead_sockets().await;
}
