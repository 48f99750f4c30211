//! The channels between the agent's parts, and what each part is given of them.

use std::{
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

use api::{ConfigStatus, Devices};
use config::{Config, Handover};
use health::Policy;
use inventory::{Inputs, Published, Readers, Request, Requests};
use jiff::Timestamp;
use pool::Offers;
use prepare::{DeepWires, Preparer, Rounds, command::Runner, run_deep_checks};
use probe::{
    Update,
    protocol::FileSearch,
    supervisor::{self, Children, OrdersByBackend},
};
use tokio::sync::{Mutex, mpsc, watch};
use tokio_util::sync::CancellationToken;
use web::{Operator, control::Pages};

use super::{
    Source,
    command::own_runner,
    offers::{self, Made},
    parts::Part,
    probe::probe_settings,
    status::{self, StatusParts},
};
use crate::{reap, vendors::VENDORS};

/// The channels between the parts. They outlive each of them.
#[derive(Clone, Debug)]
pub(super) struct Wires {
    seen: mpsc::Sender<Update>,
    updates: Arc<Mutex<mpsc::Receiver<Update>>>,
    pub(super) policy: watch::Sender<Policy>,
    asked: Requests,
    requests: Arc<Mutex<mpsc::Receiver<Request>>>,
    orders: OrdersByBackend,
    /// The config that offers are made by. Another one is sent only if it may change them.
    pub(super) config: watch::Sender<Arc<Config>>,
    /// The senders of the inventory's own tasks.
    published: Published,
    /// Everything that the inventory publishes.
    pub(super) readers: Readers,
    /// Offers as they are made.
    drafts: watch::Sender<Offers>,
    /// Offers that the kubelet may have.
    offers: watch::Sender<Offers>,
    cdi: watch::Sender<kubelet::cdi::Status>,
    /// What became of every device.
    made: watch::Sender<Made>,
    kubelet: watch::Sender<kubelet::Status>,
    /// The config at work.
    pub(super) loaded: watch::Sender<ConfigStatus>,
    started: Timestamp,
    children: Children,
    /// Runs the commands of users.
    runner: Runner,
    /// The rhythm of deep checks.
    rounds: Rounds,
    /// The arguments that make a probe log as the agent does.
    log: Vec<String>,
}

/// The work of a part.
pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

// === impl Wires ===

impl Wires {
    /// Channels with nothing in them.
    pub(super) fn new(config: &Config, source: &Source) -> Self {
        let (seen, updates) = mpsc::channel(256);
        let (asked, requests) = Requests::channel();
        let policy = watch::Sender::new(Policy::of(config, VENDORS));
        let published = Published::new();
        let children = Children::default();
        Self {
            seen,
            updates: Arc::new(Mutex::new(updates)),
            policy,
            asked,
            requests: Arc::new(Mutex::new(requests)),
            orders: OrdersByBackend::default(),
            config: watch::Sender::new(Arc::new(config.clone())),
            readers: published.readers(),
            published,
            drafts: watch::Sender::new(Offers::default()),
            offers: watch::Sender::new(Offers::default()),
            cdi: watch::Sender::default(),
            made: watch::Sender::default(),
            kubelet: watch::Sender::default(),
            loaded: watch::Sender::new(status::fresh_config(source.file().map(Path::to_owned))),
            started: Timestamp::now(),
            runner: own_runner(children.clone()),
            rounds: Rounds::default(),
            children,
            log: source.log.clone(),
        }
    }

    /// The future of a part; it ends when `stop` is cancelled.
    pub(super) fn task(&self, part: &Part, config: &Config, stop: CancellationToken) -> Task {
        let wires = self.clone();
        let config = config.clone();
        match part {
            Part::Probe(name) => wires.probe(name, &config, stop),
            Part::Deep => Box::pin(async move {
                let policy = wires.policy.subscribe();
                let _ = stop.run_until_cancelled(wires.deep_checks(policy)).await;
            }),
            Part::Inventory => wires.inventory(config, stop),
            Part::Keeper => Box::pin(inventory::keep(wires.published, stop)),
            Part::Offers => Box::pin(async move {
                let snapshots = wires.readers.snapshots;
                let config = wires.config.subscribe();
                let work = offers::make(snapshots, config, wires.drafts, wires.made);
                let _ = stop.run_until_cancelled(work).await;
            }),
            Part::Cdi => {
                let root = config.host_root;
                let dir = config.kubelet.dir;
                let settings = kubelet::cdi::Settings::new(config.cdi, VENDORS, root, dir);
                let wires = kubelet::cdi::Wires {
                    snapshots: wires.readers.snapshots,
                    config: wires.config.subscribe(),
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
                let samples = wires.readers.samples.clone();
                let preparer =
                    Preparer::new(wires.readers, wires.asked, wires.orders, wires.runner);
                settings.prepare = Some(Arc::new(preparer));
                settings.samples = samples;
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

    /// Tells the inventory that there is no such backend any more.
    pub(super) fn retire(&self, backend: String) -> impl Future<Output = ()> + use<> {
        self.orders.stop(&backend);
        let seen = self.seen.clone();
        async move {
            // Without an inventory there is nobody to tell.
            let _ = seen.send(Update::Retired(backend)).await;
        }
    }

    fn probe(self, name: &str, config: &Config, stop: CancellationToken) -> Task {
        let orders = self.orders.start(name);
        let mut settings = probe_settings(name, config, &self.log, self.children, orders);
        // A reload may ask for them: then they are known, and no device has to wait.
        settings.configure.driver_files = match needs_files(config) {
            true => FileSearch::Now,
            false => FileSearch::Later,
        };
        let mut restored = self.readers.restored;
        Box::pin(async move {
            // What an operator has in hand is not looked at, not even once.
            let ready = restored.wait_for(|restored| *restored);
            if stop.run_until_cancelled(ready).await.is_some() {
                supervisor::run(settings, self.seen, stop).await;
            }
        })
    }

    async fn deep_checks(self, policy: watch::Receiver<Policy>) {
        let wires = DeepWires {
            readers: self.readers,
            orders: self.orders,
            runner: self.runner,
            updates: self.seen,
            rounds: self.rounds,
        };
        run_deep_checks(wires, policy).await;
    }

    fn inventory(self, config: Config, stop: CancellationToken) -> Task {
        Box::pin(async move {
            let mut updates = self.updates.lock().await;
            let mut requests = self.requests.lock().await;
            let inputs = Inputs {
                policy: self.policy.subscribe(),
                updates: &mut updates,
                requests: &mut requests,
                orders: self.orders,
                boot_id: boot_id(config.host_root),
            };
            let work = inventory::run(inputs, self.published);
            let _ = stop.run_until_cancelled(work).await;
        })
    }

    /// What commands can ask for. Read when asked for, from what is known already.
    fn pages(self) -> Pages {
        let Self {
            readers,
            asked,
            orders,
            started,
            ..
        } = self;
        let (loaded, made) = (self.loaded.subscribe(), self.made.subscribe());
        let (kubelet, cdi) = (self.kubelet.subscribe(), self.cdi.subscribe());
        let (snapshots, keeping) = (readers.snapshots.clone(), readers.keeping.clone());
        let samples = readers.samples.clone();
        Operator::new(readers, asked, orders)
            .add_to(Pages::default())
            .with(api::DEVICES, move || {
                serde_json::to_string(&Devices::new(&snapshots.borrow(), &samples.borrow()))
            })
            .with(api::STATUS, move || {
                let parts = StatusParts {
                    config: &loaded.borrow(),
                    resources: &kubelet.borrow().resources,
                    made: &made.borrow(),
                    cdi: &cdi.borrow(),
                    keeping: &keeping.borrow(),
                };
                serde_json::to_string(&parts.page(started))
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
    let mut handovers = config.pools.pools.iter().map(|pool| &pool.handover);
    handovers.any(Handover::may_use_cdi)
}
