//! The agent's parts and the channels between them.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
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
    supervisor::{self, Children, Orders},
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
    operator::Operator,
    prestart::Steward,
    probe::{is_other, own_probe},
    status::Status,
};
use crate::{
    inventory::{self, Inlets, Outlets, Request, Rules},
    reap,
};

/// The pause before a part that ended by itself is started again.
const PAUSE: Duration = Duration::from_secs(1);

/// The parts of the agent, in the order the data flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Keeps the NVIDIA probe running.
    Probe,
    /// Puts what is seen into snapshots.
    Inventory,
    /// Keeps what has to outlive the agent.
    Keeper,
    /// Makes offers of the snapshots.
    Offers,
    /// Writes CDI specs, and passes the offers on that they are there for.
    Cdi,
    /// Serves the kubelet.
    Kubelet,
    /// Serves the commands.
    Control,
    /// Reaps orphans.
    Reaper,
}

const ALL: [Part; 8] = [
    Part::Probe,
    Part::Inventory,
    Part::Keeper,
    Part::Offers,
    Part::Cdi,
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
    rules: watch::Sender<Rules>,
    asked: mpsc::Sender<Request>,
    requests: Arc<Mutex<mpsc::Receiver<Request>>>,
    pools: watch::Sender<Pools>,
    snapshots: watch::Sender<Arc<Snapshot>>,
    /// Everything that the inventory tells, snapshots among it.
    known: Outlets,
    /// Offers as they are made.
    drafts: watch::Sender<Offers>,
    /// Offers that the kubelet may have.
    offers: watch::Sender<Offers>,
    cdi: watch::Sender<kubelet::cdi::Status>,
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
        let (asked, requests) = mpsc::channel(16);
        let rules = watch::Sender::new(Rules::new(&config));
        let known = Outlets::new(Orders::default());
        let pools = watch::Sender::new(config.pools.clone());
        Self {
            config,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            tokens: BTreeMap::new(),
            wires: Wires {
                seen,
                updates: Arc::new(Mutex::new(updates)),
                rules,
                asked,
                requests: Arc::new(Mutex::new(requests)),
                pools,
                snapshots: known.snapshots.clone(),
                known,
                drafts: watch::Sender::new(Offers::default()),
                offers: watch::Sender::new(Offers::default()),
                cdi: watch::Sender::default(),
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

    /// Waits until the driver is found not to start, or to lack an IMEX channel that is required,
    /// where that is to end the agent; why. Once it has started, nothing ends the agent.
    pub(super) fn init_failed(&self) -> impl Future<Output = String> + use<> {
        let wanted = self.config.fail_on_init_error;
        let mut snapshots = self.wires.snapshots.subscribe();
        let pools = self.config.pools.clone();
        async move {
            if wanted && let Some(reason) = failed_start(&mut snapshots, &pools).await {
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
        if is_other(&old, &self.config) {
            changed.push(Part::Probe);
        }
        if old.cdi != self.config.cdi || old.probe.host_root != self.config.probe.host_root {
            changed.push(Part::Cdi);
        }
        self.wires.rules.send_replace(Rules::new(&self.config));
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
                let mut settings = own_probe(&config, wires.children, wires.known.orders);
                settings.program.args.extend(wires.log);
                // A reload may ask for them: then they are known, and no device has to wait.
                let files = match needs_files(&config) {
                    true => "--driver-files",
                    false => "--driver-files-later",
                };
                settings.program.args.push(files.to_owned());
                let mut restored = wires.known.restored.subscribe();
                Box::pin(async move {
                    // What an operator has in hand is not looked at, not even once.
                    let ready = restored.wait_for(|restored| *restored);
                    if stop.run_until_cancelled(ready).await.is_some() {
                        supervisor::run(settings, wires.seen, stop).await;
                    }
                })
            }
            Part::Inventory => wires.inventory(config, stop),
            Part::Keeper => {
                let (kept, rules) = (wires.known.kept.subscribe(), wires.rules.subscribe());
                Box::pin(inventory::keep(kept, rules, stop))
            }
            Part::Offers => Box::pin(async move {
                let snapshots = wires.snapshots.subscribe();
                let pools = wires.pools.subscribe();
                let work = offers::make(snapshots, pools, wires.drafts, wires.made);
                let _ = stop.run_until_cancelled(work).await;
            }),
            Part::Cdi => {
                let settings = kubelet::cdi::Settings::new(config.cdi, config.probe.host_root);
                let wires = kubelet::cdi::Wires {
                    snapshots: wires.snapshots.subscribe(),
                    pools: wires.pools.subscribe(),
                    drafts: wires.drafts.subscribe(),
                    offers: wires.offers,
                    status: wires.cdi,
                };
                Box::pin(kubelet::cdi::run(settings, wires, stop))
            }
            Part::Kubelet => {
                let mut settings = kubelet::front::Settings::new(config.kubelet.dir);
                settings.pod_resources = Some(config.kubelet.pod_resources_socket);
                settings.register = config.kubelet.register;
                let steward = Steward::new(wires.known, wires.asked, wires.children);
                settings.prepare = Some(Arc::new(steward));
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

    fn inventory(self, config: Config, stop: CancellationToken) -> Task {
        Box::pin(async move {
            let mut updates = self.updates.lock().await;
            let mut requests = self.requests.lock().await;
            let inlets = Inlets {
                rules: self.rules.subscribe(),
                updates: &mut updates,
                requests: &mut requests,
                boot_id: boot_id(config.probe.host_root),
            };
            let work = inventory::run(inlets, self.known);
            let _ = stop.run_until_cancelled(work).await;
        })
    }

    /// What commands can ask for. Read when asked for, from what is known already.
    fn pages(self) -> Pages {
        let Self {
            snapshots,
            status,
            kubelet,
            made,
            cdi,
            known,
            asked,
            ..
        } = self;
        Operator::new(known, asked)
            .add_to(Pages::default())
            .with("/v1/devices", move || {
                serde_json::to_string(&**snapshots.borrow())
            })
            .with("/v1/status", move || {
                let mut status = status.borrow().clone();
                status.resources.clone_from(&kubelet.borrow().resources);
                status.offers.clone_from(&made.borrow());
                status.cdi.clone_from(&cdi.borrow());
                serde_json::to_string(&status)
            })
    }
}

/// The kernel's id of this boot; empty where it does not tell.
fn boot_id(host_root: PathBuf) -> String {
    let root = host::Root::new(host_root);
    root.text("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
}

/// Whether the driver's files, which only CDI specs are made of, are needed from the first look on.
fn needs_files(config: &Config) -> bool {
    let pools = config.pools.pools.iter();
    grant::cdi::Wish::of(pools.map(|pool| &pool.handover)).is_some()
}

/// Waits for the driver's start; why it failed, if it did.
async fn failed_start(
    snapshots: &mut watch::Receiver<Arc<Snapshot>>,
    pools: &Pools,
) -> Option<String> {
    let decided = |snapshot: &Arc<Snapshot>| {
        let mut phases = snapshot.backends.iter().map(|backend| backend.phase);
        phases.any(|phase| !matches!(phase, Phase::Starting | Phase::Failing))
    };
    let snapshot = Arc::clone(&*snapshots.wait_for(decided).await.ok()?);
    let failed = |phase| matches!(phase, Phase::NoDriver | Phase::DriverFailed);
    let mut backends = snapshot.backends.iter();
    if let Some(backend) = backends.find(|backend| failed(backend.phase)) {
        return Some(backend.message.clone());
    }
    let missing = pool::missing_channels(pools, &snapshot);
    let channel = missing.first()?;
    Some(format!(
        "IMEX channel {channel} is required and /dev/nvidia-caps-imex-channels/channel{channel} is \
         not visible to the agent"
    ))
}
