//! The agent's parts and the channels between them.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use config::{Config, Pools};
use jiff::Timestamp;
use model::{Phase, Snapshot};
use pool::Offers;
use probe::{
    Update,
    supervisor::{self, Children},
};
use tokio::{
    sync::{Mutex, mpsc, watch},
    task::{Id, JoinSet},
    time::sleep,
};
use tokio_util::sync::CancellationToken;
use web::control::Pages;

use super::{
    Source,
    offers::{self, Made},
    probe::own_probe,
    status::Status,
};
use crate::{inventory, reap};

/// The pause before a part that ended by itself is started again.
const PAUSE: Duration = Duration::from_secs(1);

/// The parts of the agent, in the order the data flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Keeps the NVIDIA probe running.
    Probe,
    /// Puts what is seen into snapshots.
    Inventory,
    /// Makes offers of the snapshots.
    Offers,
    /// Serves the kubelet.
    Kubelet,
    /// Serves the commands.
    Control,
    /// Reaps orphans.
    Reaper,
}

const ALL: [Part; 6] = [
    Part::Probe,
    Part::Inventory,
    Part::Offers,
    Part::Kubelet,
    Part::Control,
    Part::Reaper,
];

/// The running parts and what they share.
#[derive(Debug)]
pub(super) struct Parts {
    config: Config,
    tasks: JoinSet<()>,
    running: HashMap<Id, Part>,
    tokens: BTreeMap<Part, CancellationToken>,
    wires: Wires,
}

/// The channels between the parts. They outlive each of them.
#[derive(Clone, Debug)]
struct Wires {
    seen: mpsc::Sender<Update>,
    updates: Arc<Mutex<mpsc::Receiver<Update>>>,
    health: watch::Sender<config::Health>,
    pools: watch::Sender<Pools>,
    snapshots: watch::Sender<Arc<Snapshot>>,
    offers: watch::Sender<Offers>,
    /// What became of every device.
    made: watch::Sender<Made>,
    kubelet: watch::Sender<kubelet::Status>,
    status: watch::Sender<Status>,
    children: Children,
    /// The arguments that make a probe log as the agent does.
    log: Vec<String>,
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

// === impl Parts ===

impl Parts {
    pub(super) fn new(config: Config, source: &Source) -> Self {
        let (seen, updates) = mpsc::channel(256);
        let health = watch::Sender::new(config.health.clone());
        let pools = watch::Sender::new(config.pools.clone());
        Self {
            config,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            tokens: BTreeMap::new(),
            wires: Wires {
                seen,
                updates: Arc::new(Mutex::new(updates)),
                health,
                pools,
                snapshots: watch::Sender::new(Arc::new(Snapshot::empty(Timestamp::now()))),
                offers: watch::Sender::new(Offers::default()),
                made: watch::Sender::default(),
                kubelet: watch::Sender::default(),
                status: watch::Sender::new(Status::new(source.file().map(Path::to_owned))),
                children: Children::default(),
                log: source.log.clone(),
            },
        }
    }

    pub(super) fn start_all(&mut self) {
        for part in ALL {
            self.start(part, Duration::ZERO);
        }
    }

    /// Waits until a part ends, and starts it again.
    pub(super) async fn tend(&mut self) {
        let Some(ended) = self.tasks.join_next_with_id().await else {
            return std::future::pending().await;
        };
        let (id, crash) = match ended {
            Ok((id, ())) => (id, None),
            Err(error) => (error.id(), Some(error)),
        };
        let Some(part) = self.running.remove(&id) else {
            return;
        };
        let told_to = self.tokens.get(&part).is_some_and(|t| t.is_cancelled());
        if told_to && crash.is_none() {
            self.start(part, Duration::ZERO);
            return;
        }
        tracing::error!(
            ?part,
            error = crash.map(tracing::field::display),
            "a part of the agent ended; it is started again"
        );
        self.start(part, PAUSE);
        // An inventory that starts anew has to be told everything.
        if part == Part::Inventory {
            self.cancel(Part::Probe);
        }
    }

    /// Waits until the driver is found not to start, where that is to end the agent; why. Once it
    /// has started, nothing ends the agent.
    pub(super) fn init_failed(&self) -> impl Future<Output = String> + use<> {
        let wanted = self.config.fail_on_init_error;
        let mut snapshots = self.wires.snapshots.subscribe();
        async move {
            if wanted && let Some(reason) = failed_start(&mut snapshots).await {
                return reason;
            }
            std::future::pending().await
        }
    }

    /// Takes over a new config: parts that it changes are ended, and start anew with it.
    pub(super) fn reload(&mut self, new: Result<Config, config::Error>) {
        let new = match new {
            Ok(new) => new,
            Err(error) => {
                let problem = format!("{:#}", anyhow::Error::new(error));
                tracing::error!(
                    problem,
                    "the new config is not used; the last good one stays at work"
                );
                self.wires
                    .status
                    .send_modify(|s| s.config.problem = Some(problem));
                return;
            }
        };
        self.wires.status.send_modify(|status| {
            status.config.problem = None;
            status.config.loaded = Timestamp::now();
        });
        let old = std::mem::replace(&mut self.config, new);
        let mut changed = Vec::new();
        let mut pools_changed = false;
        if old.probe != self.config.probe {
            changed.push(Part::Probe);
        }
        self.wires.health.send_replace(self.config.health.clone());
        // Offers are made anew; those that come out the same disturb nobody.
        if old.pools != self.config.pools {
            self.wires.pools.send_replace(self.config.pools.clone());
            pools_changed = true;
        }
        if old.kubelet != self.config.kubelet {
            changed.push(Part::Kubelet);
        }
        if old.control_socket != self.config.control_socket {
            changed.push(Part::Control);
        }
        tracing::info!(?changed, pools = pools_changed, "the config was read again");
        for part in changed {
            self.cancel(part);
        }
    }

    /// Ends every part.
    pub(super) async fn stop(&mut self) {
        for part in ALL {
            self.cancel(part);
        }
        while self.tasks.join_next().await.is_some() {}
    }

    fn cancel(&self, part: Part) {
        if let Some(token) = self.tokens.get(&part) {
            token.cancel();
        }
    }

    fn start(&mut self, part: Part, pause: Duration) {
        let token = CancellationToken::new();
        let task = self.wires.task(part, &self.config, token.clone());
        let stop = token.clone();
        let handle = self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(pause), if !pause.is_zero() => {}
                () = std::future::ready(()), if pause.is_zero() => {}
            }
            task.await;
        });
        self.running.insert(handle.id(), part);
        self.tokens.insert(part, token);
    }
}

// === impl Wires ===

impl Wires {
    /// The future of a part; it ends when `stop` is cancelled.
    fn task(&self, part: Part, config: &Config, stop: CancellationToken) -> Task {
        let wires = self.clone();
        let config = config.clone();
        match part {
            Part::Probe => {
                let mut settings = own_probe(&config.probe, wires.children);
                settings.program.args.extend(wires.log);
                Box::pin(supervisor::run(settings, wires.seen, stop))
            }
            Part::Inventory => Box::pin(async move {
                let mut updates = wires.updates.lock().await;
                let health = wires.health.subscribe();
                let work = inventory::run(health, &mut updates, wires.snapshots);
                let _ = stop.run_until_cancelled(work).await;
            }),
            Part::Offers => Box::pin(async move {
                let snapshots = wires.snapshots.subscribe();
                let pools = wires.pools.subscribe();
                let work = offers::make(snapshots, pools, wires.offers, wires.made);
                let _ = stop.run_until_cancelled(work).await;
            }),
            Part::Kubelet => {
                let mut settings = kubelet::front::Settings::new(config.kubelet.dir);
                settings.pod_resources = Some(config.kubelet.pod_resources_socket);
                settings.register = config.kubelet.register;
                let offers = wires.offers.subscribe();
                Box::pin(kubelet::front::run(settings, offers, wires.kubelet, stop))
            }
            Part::Control => Box::pin(async move {
                let pages = wires.pages();
                web::control::serve(&config.control_socket, pages, stop).await;
            }),
            Part::Reaper => Box::pin(async move {
                let _ = stop
                    .run_until_cancelled(reap::orphans(wires.children))
                    .await;
            }),
        }
    }

    /// What commands can ask for. Read when asked for, from what is known already.
    fn pages(self) -> Pages {
        let Self {
            snapshots,
            status,
            kubelet,
            made,
            ..
        } = self;
        Pages::default()
            .with("/v1/devices", move || {
                serde_json::to_string(&**snapshots.borrow())
            })
            .with("/v1/status", move || {
                let mut status = status.borrow().clone();
                status.resources.clone_from(&kubelet.borrow().resources);
                status.offers.clone_from(&made.borrow());
                serde_json::to_string(&status)
            })
    }
}

/// Waits for the driver's start; why it failed, if it did.
async fn failed_start(snapshots: &mut watch::Receiver<Arc<Snapshot>>) -> Option<String> {
    let decided = |snapshot: &Arc<Snapshot>| {
        let mut phases = snapshot.backends.iter().map(|backend| backend.phase);
        phases.any(|phase| !matches!(phase, Phase::Starting | Phase::Failing))
    };
    let snapshot = Arc::clone(&*snapshots.wait_for(decided).await.ok()?);
    let failed = |phase| matches!(phase, Phase::NoDriver | Phase::DriverFailed);
    let mut backends = snapshot.backends.iter();
    let backend = backends.find(|backend| failed(backend.phase))?;
    Some(backend.message.clone())
}
