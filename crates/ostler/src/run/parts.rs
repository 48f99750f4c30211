//! The agent's parts: they are started, and started again when they end or their config is another.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use config::Config;
use health::Policy;
use jiff::Timestamp;
use tokio::{
    task::{Id, JoinSet},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::{Source, init, probe::is_other, wires::Wires};
use crate::vendors::VENDORS;

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

// === impl Parts ===

impl Parts {
    pub(super) fn new(config: Config, source: &Source) -> Self {
        Self {
            wires: Wires::new(&config, source),
            config,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            tokens: BTreeMap::new(),
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

    /// Waits until the driver is found not to start, where that is to end the agent; why.
    pub(super) fn init_failed(&self) -> impl Future<Output = String> + use<> {
        init::failed(&self.config, self.wires.readers.snapshots.clone())
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
                    .loaded
                    .send_modify(|config| config.problem = Some(problem));
                return;
            }
        };
        self.wires.loaded.send_modify(|config| {
            config.problem = None;
            config.loaded = Timestamp::now();
        });
        let old = std::mem::replace(&mut self.config, new);
        let mut changed = Vec::new();
        let mut pools_changed = false;
        if is_other(&old, &self.config) {
            changed.push(Part::Probe);
        }
        if old.cdi != self.config.cdi
            || old.host_root != self.config.host_root
            || old.kubelet.dir != self.config.kubelet.dir
        {
            changed.push(Part::Cdi);
        }
        self.wires
            .policy
            .send_replace(Policy::of(&self.config, VENDORS));
        // Offers are made anew; those that come out the same disturb nobody.
        if old.pools != self.config.pools
            || old.backends != self.config.backends
            || old.health.unknown != self.config.health.unknown
        {
            let config = Arc::new(self.config.clone());
            self.wires.config.send_replace(config);
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
