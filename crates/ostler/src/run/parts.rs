//! The agent's parts. Each is a task. It is started again when it ends, or when a reload changes its
//! settings.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use config::Config;
use health::HealthPolicy;
use jiff::Timestamp;
use tokio::{
    task::{Id, JoinSet},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::{
    ConfigSource, init,
    probe::{enabled_backends, is_other},
    wires::AgentChannels,
};
use crate::vendors::VENDORS;

/// Pause before a part that ended by itself is started again.
const PAUSE: Duration = Duration::from_secs(1);

/// Parts of the agent, in the order of the data flow. The log shows these names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AgentPart {
    /// Supervises the probe of a backend.
    Probe(String),
    /// Runs deep checks on idle cards.
    Deep,
    /// Makes snapshots from the updates of all probes.
    Inventory,
    /// Writes the state file.
    Keeper,
    /// Makes offers from the snapshots.
    Offers,
    /// Writes CDI specs, then forwards the offers that they cover.
    Cdi,
    /// Registers the resources and serves the kubelet's calls.
    Kubelet,
    /// Serves the control socket.
    Control,
    /// Reaps orphaned processes.
    Reaper,
}

/// Parts that exist once. [`AgentPart::Probe`] exists once for each backend.
const SINGLE: [AgentPart; 8] = [
    AgentPart::Deep,
    AgentPart::Inventory,
    AgentPart::Keeper,
    AgentPart::Offers,
    AgentPart::Cdi,
    AgentPart::Kubelet,
    AgentPart::Control,
    AgentPart::Reaper,
];

/// Running parts, and the channels between them.
#[derive(Debug)]
pub(super) struct RunningParts {
    config: Config,
    tasks: JoinSet<()>,
    running: HashMap<Id, AgentPart>,
    tokens: BTreeMap<AgentPart, CancellationToken>,
    wires: AgentChannels,
}

// === impl RunningParts ===

impl RunningParts {
    pub(super) fn new(config: Config, source: &ConfigSource) -> Self {
        Self {
            wires: AgentChannels::new(&config, source),
            config,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            tokens: BTreeMap::new(),
        }
    }

    pub(super) fn start_all(&mut self) {
        for part in enabled_backends(&self.config)
            .into_iter()
            .map(AgentPart::Probe)
        {
            self.start_part(part, Duration::ZERO);
        }
        for part in SINGLE {
            self.start_part(part, Duration::ZERO);
        }
    }

    /// Waits until a part ends, and starts it again. Cancel safe.
    pub(super) async fn tend(&mut self) {
        // An empty set returns at once, and the `select!` of the caller would spin.
        let Some(ended) = self.tasks.join_next_with_id().await else {
            return std::future::pending().await;
        };
        let (id, crash) = match ended {
            Ok((id, ())) => (id, None),
            // A panic ends its task only: the profile keeps unwinding on.
            Err(error) => (error.id(), Some(error)),
        };
        let Some(part) = self.running.remove(&id) else {
            return;
        };
        // A reload has removed the backend: its devices have to go, too.
        if let AgentPart::Probe(name) = &part
            && !enabled_backends(&self.config).contains(name)
        {
            self.tokens.remove(&part);
            self.tasks.spawn(self.wires.retire_backend(name.clone()));
            return;
        }
        let told_to = self.tokens.get(&part).is_some_and(|t| t.is_cancelled());
        if told_to && crash.is_none() {
            self.start_part(part, Duration::ZERO);
            return;
        }
        tracing::error!(
            ?part,
            error = crash.map(tracing::field::display),
            "a part of the agent ended; it is started again"
        );
        // A new inventory knows no device. A probe that starts reports all of them.
        if part == AgentPart::Inventory {
            for name in enabled_backends(&self.config) {
                self.cancel(&AgentPart::Probe(name));
            }
        }
        self.start_part(part, PAUSE);
    }

    /// Waits until a backend with `failOnInitError` fails to start, and returns the reason.
    pub(super) fn init_failed(&self) -> impl Future<Output = String> + use<> {
        init::wait_for_init_failure(&self.config, self.wires.readers.snapshots.clone())
    }

    /// Applies a new config. Stops the parts whose settings it changes; each starts again when it has
    /// ended. A config with errors changes nothing: it is logged and shown in `/v1/status`.
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
        self.reload_backends(&old, &mut changed);
        // The CDI stage reads the kubelet's checkpoint in the kubelet's folder.
        if old.cdi != self.config.cdi
            || old.host_root != self.config.host_root
            || old.kubelet.dir != self.config.kubelet.dir
        {
            changed.push(AgentPart::Cdi);
        }
        self.wires
            .policy
            .send_replace(HealthPolicy::from_config(&self.config, VENDORS));
        // The offers are planned again. One that comes out equal makes no new list for the kubelet.
        if old.pools != self.config.pools
            || old.backends != self.config.backends
            || old.health.unknown != self.config.health.unknown
        {
            let config = Arc::new(self.config.clone());
            self.wires.config.send_replace(config);
            pools_changed = true;
        }
        if old.kubelet != self.config.kubelet {
            changed.push(AgentPart::Kubelet);
        }
        if old.control_socket != self.config.control_socket {
            changed.push(AgentPart::Control);
        }
        tracing::info!(?changed, pools = pools_changed, "the config was read again");
        for part in &changed {
            self.cancel(part);
        }
    }

    /// Starts backends that are new. Adds to `changed` those that are gone or have other settings.
    fn reload_backends(&mut self, old: &Config, changed: &mut Vec<AgentPart>) {
        let (before, now) = (enabled_backends(old), enabled_backends(&self.config));
        let gone = before.iter().filter(|name| !now.contains(name));
        changed.extend(gone.cloned().map(AgentPart::Probe));
        for name in now {
            let is_new = !before.contains(&name);
            let is_other = !is_new && is_other(&name, old, &self.config);
            let part = AgentPart::Probe(name);
            // A part of this name that has not ended yet is started when it has.
            if is_new && !self.tokens.contains_key(&part) {
                self.start_part(part, Duration::ZERO);
            } else if is_other {
                changed.push(part);
            }
        }
    }

    /// Stops every part and waits for all of them. Has no time limit of its own.
    pub(super) async fn stop_all(&mut self) {
        for token in self.tokens.values() {
            token.cancel();
        }
        while self.tasks.join_next().await.is_some() {}
    }

    fn cancel(&self, part: &AgentPart) {
        if let Some(token) = self.tokens.get(part) {
            token.cancel();
        }
    }

    fn start_part(&mut self, part: AgentPart, pause: Duration) {
        let token = CancellationToken::new();
        let task = self.wires.task(&part, &self.config, token.clone());
        let stop = token.clone();
        let handle = self.tasks.spawn(async move {
            // A part that is stopped during its pause never starts.
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(pause), if !pause.is_zero() => {}
                () = std::future::ready(()), if pause.is_zero() => {}
            }
            task.await;
        });
        self.running.insert(handle.id(), part.clone());
        self.tokens.insert(part, token);
    }
}
