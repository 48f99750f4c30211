//! Channels between the agent's parts, and the future of each part.

use std::{
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

use api::{ConfigStatus, DevicePage};
use config::{Config, Handover};
use health::HealthPolicy;
use inventory::{ChangeRequest, ChangeRequests, Inputs, Published, Readers};
use jiff::Timestamp;
use pool::Offers;
use prepare::{DeepCheckChannels, LastRound, Preparer, command::Runner, run_deep_checks};
use probe::{
    Update,
    protocol::FileSearch,
    supervisor::{self, ChildRegistry, OrdersByBackend},
};
use tokio::sync::{Mutex, mpsc, watch};
use tokio_util::sync::CancellationToken;
use web::{Operator, control::ControlPages};

use super::{
    ConfigSource,
    command::own_runner,
    offers::{self, PlanReport},
    parts::AgentPart,
    probe::probe_settings,
    status::{self, StatusParts},
};
use crate::{reap, vendors::VENDORS};

/// Channels between the parts. They outlive a restart of any part.
#[derive(Clone, Debug)]
pub(super) struct AgentChannels {
    seen: mpsc::Sender<Update>,
    updates: Arc<Mutex<mpsc::Receiver<Update>>>,
    pub(super) policy: watch::Sender<HealthPolicy>,
    asked: ChangeRequests,
    requests: Arc<Mutex<mpsc::Receiver<ChangeRequest>>>,
    orders: OrdersByBackend,
    /// Config for the offers. A new one is sent only if it may change them.
    pub(super) config: watch::Sender<Arc<Config>>,
    /// Senders of the inventory's tasks.
    published: Published,
    /// Receivers of everything that the inventory publishes.
    pub(super) readers: Readers,
    /// Offers as planned, before their CDI specs are written.
    drafts: watch::Sender<Offers>,
    /// Offers that the kubelet may see.
    offers: watch::Sender<Offers>,
    cdi: watch::Sender<kubelet::cdi::CdiStageStatus>,
    /// Devices that are not offered, and notes, for the status page.
    made: watch::Sender<PlanReport>,
    kubelet: watch::Sender<kubelet::Status>,
    /// State of the config in use, for the status page.
    pub(super) loaded: watch::Sender<ConfigStatus>,
    started: Timestamp,
    children: ChildRegistry,
    /// Runner of users' commands.
    runner: Runner,
    /// Time of the last round of deep checks.
    rounds: LastRound,
    /// Arguments that make a probe log as the agent does.
    log: Vec<String>,
}

/// Future of a part.
pub(super) type PartFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

// === impl AgentChannels ===

impl AgentChannels {
    /// Makes the channels. Only the policy and the config have a value.
    pub(super) fn new(config: &Config, source: &ConfigSource) -> Self {
        // Bounded: a supervisor waits while the inventory is behind.
        let (seen, updates) = mpsc::channel(256);
        let (asked, requests) = ChangeRequests::open_queue();
        let policy = watch::Sender::new(HealthPolicy::from_config(config, VENDORS));
        let published = Published::new();
        let children = ChildRegistry::default();
        Self {
            seen,
            // Behind a mutex: an inventory that starts again takes the receivers over.
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
            loaded: watch::Sender::new(status::fresh_config(
                source.config_path().map(Path::to_owned),
            )),
            started: Timestamp::now(),
            runner: own_runner(children.clone()),
            rounds: LastRound::default(),
            children,
            log: source.log.clone(),
        }
    }

    /// Makes the future of a part. It ends when `stop` is cancelled.
    pub(super) fn task(
        &self,
        part: &AgentPart,
        config: &Config,
        stop: CancellationToken,
    ) -> PartFuture {
        let wires = self.clone();
        let config = config.clone();
        match part {
            AgentPart::Probe(name) => wires.probe(name, &config, stop),
            AgentPart::Deep => Box::pin(async move {
                let policy = wires.policy.subscribe();
                let _ = stop.run_until_cancelled(wires.deep_checks(policy)).await;
            }),
            AgentPart::Inventory => wires.inventory(config, stop),
            AgentPart::Keeper => Box::pin(inventory::keep_state_file(wires.published, stop)),
            AgentPart::Offers => Box::pin(async move {
                let snapshots = wires.readers.snapshots;
                let config = wires.config.subscribe();
                let work = offers::publish_offers(snapshots, config, wires.drafts, wires.made);
                let _ = stop.run_until_cancelled(work).await;
            }),
            AgentPart::Cdi => {
                let root = config.host_root;
                let dir = config.kubelet.dir;
                let settings = kubelet::cdi::CdiSettings::new(config.cdi, VENDORS, root, dir);
                let wires = kubelet::cdi::CdiChannels {
                    snapshots: wires.readers.snapshots,
                    config: wires.config.subscribe(),
                    drafts: wires.drafts.subscribe(),
                    offers: wires.offers,
                    status: wires.cdi,
                };
                Box::pin(kubelet::cdi::run_stage(settings, wires, stop))
            }
            AgentPart::Kubelet => {
                let mut settings = kubelet::front::FrontSettings::new(config.kubelet.dir);
                settings.pod_resources = Some(config.kubelet.pod_resources_socket);
                settings.register = config.kubelet.register;
                let samples = wires.readers.samples.clone();
                let preparer =
                    Preparer::new(wires.readers, wires.asked, wires.orders, wires.runner);
                settings.prepare = Some(Arc::new(preparer));
                settings.samples = samples;
                let offers = wires.offers.subscribe();
                Box::pin(kubelet::front::run_front_end(
                    settings,
                    offers,
                    wires.kubelet,
                    stop,
                ))
            }
            AgentPart::Control => Box::pin(async move {
                let pages = wires.control_pages();
                web::control::serve(&config.control_socket, pages, stop).await;
            }),
            AgentPart::Reaper => Box::pin(async move {
                let _ = stop
                    .run_until_cancelled(reap::orphans(wires.children))
                    .await;
            }),
        }
    }

    /// Reports to the inventory that a backend is gone from the config.
    pub(super) fn retire_backend(&self, backend: String) -> impl Future<Output = ()> + use<> {
        self.orders.stop(&backend);
        let seen = self.seen.clone();
        async move {
            // It fails only when the agent ends, with the last receiver.
            let _ = seen.send(Update::Retired(backend)).await;
        }
    }

    fn probe(self, name: &str, config: &Config, stop: CancellationToken) -> PartFuture {
        let orders = self.orders.start(name);
        let mut settings = probe_settings(name, config, &self.log, self.children, orders);
        // `Later` and not `Never`: a reload may turn CDI on. The files are known then, and no device
        // has to wait for them.
        settings.configure.driver_files = match needs_files(config) {
            true => FileSearch::Now,
            false => FileSearch::Later,
        };
        let mut restored = self.readers.restored;
        Box::pin(async move {
            // The state file names the cards that an operator has released. The probe must not open
            // them, not even once.
            let ready = restored.wait_for(|restored| *restored);
            if stop.run_until_cancelled(ready).await.is_some() {
                supervisor::supervise(settings, self.seen, stop).await;
            }
        })
    }

    async fn deep_checks(self, policy: watch::Receiver<HealthPolicy>) {
        let wires = DeepCheckChannels {
            readers: self.readers,
            orders: self.orders,
            runner: self.runner,
            updates: self.seen,
            rounds: self.rounds,
        };
        run_deep_checks(wires, policy).await;
    }

    fn inventory(self, config: Config, stop: CancellationToken) -> PartFuture {
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
            let work = inventory::run_inventory(inputs, self.published);
            let _ = stop.run_until_cancelled(work).await;
        })
    }

    /// Makes the pages of the control socket. A request reads the channels and waits for no driver.
    fn control_pages(self) -> ControlPages {
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
            .add_to(ControlPages::default())
            .with_page(api::DEVICES, move || {
                serde_json::to_string(&DevicePage::new(&snapshots.borrow(), &samples.borrow()))
            })
            .with_page(api::STATUS, move || {
                let parts = StatusParts {
                    config: &loaded.borrow(),
                    resources: &kubelet.borrow().resources,
                    made: &made.borrow(),
                    cdi: &cdi.borrow(),
                    keeping: &keeping.borrow(),
                };
                serde_json::to_string(&parts.make_status(started))
            })
    }
}

/// Boot id of the kernel; empty if it cannot be read.
fn boot_id(host_root: PathBuf) -> String {
    // The kernel makes a new id at each boot (random(4)).
    let root = host::HostRoot::new(host_root);
    root.read_trimmed("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
}

/// True if a pool may use CDI. CDI specs are made from the driver's files, which the first report
/// must have then.
fn needs_files(config: &Config) -> bool {
    let mut handovers = config.pools.pools.iter().map(|pool| &pool.handover);
    handovers.any(Handover::may_use_cdi)
}
