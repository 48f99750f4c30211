//! The device plugin front end: one plugin for each resource of the offers, kept registered with
//! the kubelet until it is told to stop. Nothing around it can end it, and one plugin's trouble
//! never touches another.

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
use host::watch::Events;
use model::{ResourceName, Samples};
use pool::{Offer, Offers};
use tokio::{
    sync::watch,
    task::{Id, JoinError, JoinSet},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

pub use self::prepare::{Prepare, Preparing};
pub(crate) use self::service::Served;
use self::{
    folder::View,
    known::Answer,
    plugin::{Kept, Plugin},
};
use crate::{
    pod_resources::Client,
    socket::Names,
    status::{Row, Status},
};

/// How long the whole front end may take to end.
const FAREWELL: Duration = Duration::from_millis(1500);

/// Where the kubelet is, and how patient to be with it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The device plugin folder: `kubelet.sock` and our sockets.
    pub dir: PathBuf,
    /// The pod resources socket, if it is to be used. It need not exist.
    pub pod_resources: Option<PathBuf>,
    /// Whether inotify may be used. Without it everything still works, a little later.
    pub events: Events,
    /// The time between two looks at the folder.
    pub poll: Duration,
    /// How long the kubelet may take to answer a registration. It dials back meanwhile, for up to
    /// 10 s.
    pub register_limit: Duration,
    /// How long it may take to open its stream after that.
    pub stream_limit: Duration,
    /// The least time between two registrations of a resource.
    pub spacing: Duration,
    /// The most time between two attempts.
    pub backoff: Duration,
    /// The time between two questions to the pod resources socket.
    pub check: Duration,
    /// How long our connections may take to end by themselves.
    pub drain: Duration,
    /// How long a resource that is offered no more stays registered, with an empty list.
    pub retire: Duration,
    /// Whether to register at all.
    pub register: bool,
    /// Who prepares devices before a container starts, for pools that want it.
    pub prepare: Option<Arc<dyn Prepare>>,
    /// The newest samples, for placement by weights.
    pub samples: watch::Receiver<Samples>,
}

/// The front end at work.
#[derive(Debug)]
struct Front {
    settings: Arc<Settings>,
    names: Names,
    board: Arc<watch::Sender<Status>>,
    folder: watch::Receiver<View>,
    answers: watch::Receiver<Option<Answer>>,
    plugins: BTreeMap<ResourceName, Seat>,
    /// What is kept of each resource, however often it goes and comes.
    memory: BTreeMap<ResourceName, Kept>,
    tasks: JoinSet<()>,
    cancel: CancellationToken,
}

/// What the front end keeps of a plugin.
#[derive(Debug)]
struct Seat {
    /// As it was started, to start it again.
    plugin: Plugin,
    served: watch::Sender<Arc<Served>>,
    task: Id,
    cancel: CancellationToken,
    /// Since when its resource is offered no more.
    vacant: Option<Instant>,
}

/// Keeps every resource of the offers registered with the kubelet, until cancelled.
///
/// Ends within two seconds of the cancellation, whatever its peers do, and leaves no socket behind.
/// When the sender of the offers is gone, the last ones stand.
pub async fn run(
    settings: Settings,
    offers: watch::Receiver<Offers>,
    status: watch::Sender<Status>,
    cancel: CancellationToken,
) {
    let (seen, folder) = watch::channel(View::of(&settings.dir));
    let (told, answers) = watch::channel(None);
    // What was offered to an earlier front end and is not any more has nobody to take its row off.
    status.send_modify(|status| status.keep(&offers.borrow()));
    let mut front = Front {
        names: Names::new(&settings.dir),
        settings: Arc::new(settings.clone()),
        board: Arc::new(status),
        folder: folder.clone(),
        answers,
        plugins: BTreeMap::new(),
        memory: BTreeMap::new(),
        tasks: JoinSet::new(),
        cancel,
    };
    let watching = folder::watch(settings.dir, settings.events, settings.poll, seen);
    let asking = ask(
        settings.pod_resources,
        settings.check,
        front.board.subscribe(),
        told,
    );
    let sweeping = sweep(front.names.clone(), folder);
    // What is watched is watched in this task: it does nothing but look.
    tokio::select! {
        biased;
        () = front.serve(offers) => {}
        _ = async { tokio::join!(watching, asking, sweeping) } => {}
    }
    front.end().await;
}

// === impl Settings ===

impl Settings {
    /// The usual patience, for the kubelet whose device plugin folder is `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            pod_resources: None,
            events: Events::Inotify,
            poll: Duration::from_secs(1),
            register_limit: Duration::from_secs(12),
            stream_limit: Duration::from_secs(10),
            spacing: Duration::from_secs(1),
            backoff: Duration::from_secs(30),
            check: Duration::from_secs(10),
            drain: Duration::from_millis(300),
            retire: Duration::from_secs(30),
            register: true,
            prepare: None,
            samples: watch::Sender::default().subscribe(),
        }
    }
}

// === impl Front ===

impl Front {
    /// Follows the offers until cancelled.
    async fn serve(&mut self, mut offers: watch::Receiver<Offers>) {
        let cancel = self.cancel.clone();
        let mut ended = false;
        offers.mark_changed();
        loop {
            let retirement = self.retirement();
            tokio::select! {
                () = cancel.cancelled() => return,
                () = sleep_until(retirement.unwrap_or_else(Instant::now)), if retirement.is_some() => {
                    self.retire();
                }
                changed = offers.changed(), if !ended => match changed {
                    Ok(()) => {
                        let newest = Arc::clone(&offers.borrow_and_update());
                        self.follow(&newest);
                    }
                    // Nobody makes offers any more: the last ones stand.
                    Err(_) => ended = true,
                },
                Some(ended) = self.tasks.join_next() => if let Err(error) = ended {
                    self.revive(&error);
                },
            }
        }
    }

    /// Passes each offer on to its plugin. A resource that is offered no more keeps its plugin for
    /// a while, with an empty list: so its capacity is zero at once.
    fn follow(&mut self, offers: &Offers) {
        for offer in offers.iter() {
            match self.plugins.get_mut(&offer.resource) {
                Some(seat) => {
                    seat.vacant = None;
                    seat.serve(Arc::clone(offer));
                }
                None => self.admit(Arc::clone(offer)),
            }
        }
        for (resource, seat) in &mut self.plugins {
            if !offers.iter().any(|offer| offer.resource == *resource) {
                seat.vacate();
            }
        }
    }

    /// When the next resource that is offered no more goes.
    fn retirement(&self) -> Option<Instant> {
        let vacant = self.plugins.values().filter_map(|seat| seat.vacant).min()?;
        Some(vacant + self.settings.retire)
    }

    /// Ends the plugins whose time is over. The kubelet forgets the resource some minutes later.
    fn retire(&mut self) {
        let limit = self.settings.retire;
        self.plugins.retain(|resource, seat| {
            let over = seat.vacant.is_some_and(|since| since.elapsed() >= limit);
            if over {
                tracing::info!(%resource, "the resource is offered no more and goes");
                seat.cancel.cancel();
                seat.plugin.row.remove();
            }
            !over
        });
    }

    fn admit(&mut self, offer: Arc<Offer>) {
        let resource = offer.resource.clone();
        let (served, receiver) = watch::channel(Arc::new(Served::new(offer, None)));
        // One that was here before may still be ending: its end must not be taken for ours.
        let pause = match self.memory.contains_key(&resource) {
            true => self.settings.spacing,
            false => Duration::ZERO,
        };
        let plugin = Plugin {
            resource: resource.clone(),
            settings: Arc::clone(&self.settings),
            names: self.names.clone(),
            served: receiver,
            folder: self.folder.clone(),
            answers: self.answers.clone(),
            row: Row::new(Arc::clone(&self.board), resource.clone()),
            kept: self.memory.entry(resource.clone()).or_default().clone(),
        };
        plugin.row.offer(&served.borrow());
        let cancel = self.cancel.child_token();
        let task = self.start(plugin.clone(), cancel.clone(), pause);
        let seat = Seat {
            plugin,
            served,
            task,
            cancel,
            vacant: None,
        };
        self.plugins.insert(resource, seat);
    }

    fn start(&mut self, plugin: Plugin, cancel: CancellationToken, pause: Duration) -> Id {
        let life = async move {
            sleep(pause).await;
            plugin.run(cancel).await;
        };
        self.tasks.spawn(life).id()
    }

    /// Starts a plugin again that panicked: a defect of ours, which must not cost the node its
    /// devices.
    fn revive(&mut self, error: &JoinError) {
        let mut seats = self.plugins.values();
        let Some(seat) = seats.find(|seat| seat.task == error.id()) else {
            return;
        };
        let plugin = seat.plugin.clone();
        let message = format!("internal error, starting again: {error}");
        plugin.row.set(Phase::Failed, &message, None);
        let (resource, cancel) = (plugin.resource.clone(), seat.cancel.clone());
        let task = self.start(plugin, cancel, self.settings.spacing);
        if let Some(seat) = self.plugins.get_mut(&resource) {
            seat.task = task;
        }
    }

    /// Waits for the plugins to end, and makes those end that do not.
    async fn end(mut self) {
        self.cancel.cancel();
        let ending = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(FAREWELL, ending).await.is_err() {
            tracing::warn!("device plugins did not end in time and are cut off");
            self.tasks.shutdown().await;
        }
    }
}

// === impl Seat ===

impl Seat {
    fn serve(&self, offer: Arc<Offer>) {
        let served = Arc::new(Served::new(offer, Some(&self.served.borrow())));
        self.plugin.row.offer(&served);
        self.served.send_replace(served);
    }

    fn vacate(&mut self) {
        self.vacant.get_or_insert_with(Instant::now);
        let offer = Arc::clone(&self.served.borrow().offer);
        if !offer.units.is_empty() {
            self.serve(Arc::new(Offer {
                units: Vec::new(),
                ..Offer::clone(&offer)
            }));
        }
    }
}

async fn ask(
    socket: Option<PathBuf>,
    pause: Duration,
    status: watch::Receiver<Status>,
    answers: watch::Sender<Option<Answer>>,
) {
    if let Some(socket) = socket {
        known::ask(Client::new(socket, pause / 2), pause, status, answers).await;
    }
}

/// Removes what dead processes left, as soon as there is a folder.
async fn sweep(names: Names, folder: watch::Receiver<View>) {
    wait::until(&folder, |view| view.exists).await;
    names.sweep().await;
}
