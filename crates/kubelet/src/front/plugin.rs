//! Loop of one resource: wait for the kubelet, serve, register, watch the evidence, start again.
//! One server at a time, each with a socket name of its own.

use std::{
    sync::{Arc, Mutex, atomic::AtomicU64},
    time::Duration,
};

use api::Phase;
use host::FileIdentity;
use model::ResourceName;
use tokio::{net::UnixStream, sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    Settings,
    evidence::{Evidence, Lost, Patience},
    folder::View,
    known::Answer,
    pace::Pace,
    prepare::options,
    ready::Ready,
    register::{self, register},
    service::Served,
};
use crate::{socket::Names, status::Row};

// The kubelet needs a moment to notice the end of our old stream before a new socket registers. If
// the kubelet ended the stream because it is exiting, the pause lets it exit: a registration that
// breaks off in the middle would delay the next one by `Settings::spacing`.
/// Pause between the end of a stream and the next registration.
const BREATH: Duration = Duration::from_millis(100);

/// Device plugin of one resource.
#[derive(Clone, Debug)]
pub(crate) struct Plugin {
    pub(crate) resource: ResourceName,
    pub(crate) settings: Arc<Settings>,
    pub(crate) names: Names,
    pub(crate) served: watch::Receiver<Arc<Served>>,
    pub(crate) folder: watch::Receiver<View>,
    pub(crate) answers: watch::Receiver<Option<Answer>>,
    pub(crate) row: Row,
    pub(crate) kept: Kept,
}

/// Facts about a resource that outlive its plugins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    // The kubelet 1.37 refuses a registration with a socket path that it is still connected to
    // (kubernetes PR 135437).
    /// Number of sockets that the resource has had, so that no socket name is used twice.
    pub(crate) sockets: Arc<AtomicU64>,
    /// Times at which cards were granted last, for the placement policy `round-robin`.
    pub(crate) clock: Arc<Mutex<place::Clock>>,
}

/// State that a plugin keeps from one registration to the next.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) pace: Pace,
    pub(crate) patience: Patience,
    /// Identity of `kubelet.sock` at the last attempt.
    pub(crate) tried: Option<FileIdentity>,
}

/// End of a registration: lost after it was in force, or failed before.
#[derive(Debug)]
enum Ending {
    Lost(Lost),
    Failed(register::Error),
}

// === impl Plugin ===

impl Plugin {
    /// Keeps the resource registered until cancelled.
    pub(crate) async fn run(self, cancel: CancellationToken) {
        if !self.settings.register {
            return self.serve_only(&cancel).await;
        }
        let mut memory = Memory::new(self.settings.spacing);
        while let Some(ready) = cancel.run_until_cancelled(self.ready(&mut memory)).await {
            let held = self.hold(ready, &mut memory, &cancel);
            let Some((ending, name)) = held.await else {
                return;
            };
            self.settle(ending, &name, &mut memory);
        }
    }

    /// Registers, and watches the registration until it is lost; `None` when cancelled. The server is
    /// stopped in every case before the call returns.
    async fn hold(
        &self,
        ready: Ready,
        memory: &mut Memory,
        cancel: &CancellationToken,
    ) -> Option<(Ending, String)> {
        let Ready {
            server,
            name,
            kubelet,
            path,
            identity,
        } = ready;
        let evidence = Evidence {
            resource: self.resource.as_str(),
            kubelet: (&path, identity),
            file: server.file(),
            folder: self.folder.clone(),
            line: server.line(),
            served: self.served.clone(),
            answers: self.answers.clone(),
            options: options(&self.served.borrow().offer),
        };
        memory.pace.mark();
        let life = self.live(&name, kubelet, &evidence, memory);
        let ending = cancel.run_until_cancelled(life).await;
        // The old stream must end before the next registration. Up to 1.36 the kubelet keeps its
        // clients by resource name only, and takes the end of an old stream for the end of the new
        // one (pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go, `runClient`; fixed by
        // kubernetes PR 135437 in 1.37).
        server.stop(self.settings.drain).await;
        Some((ending?, name))
    }

    async fn live(
        &self,
        name: &str,
        kubelet: UnixStream,
        evidence: &Evidence<'_>,
        memory: &mut Memory,
    ) -> Ending {
        // A retry keeps the phase of the failure before it, so that the same failure is not logged
        // again.
        if !matches!(self.row.phase(), Phase::Refused | Phase::Failed) {
            let message = "asking the kubelet";
            self.row.set(Phase::Registering, message, Some(name));
        }
        let enrolled = async {
            let limit = self.settings.register_limit;
            let answer = register(&self.resource, name, kubelet, evidence.options, limit).await;
            memory.pace.mark();
            answer?;
            self.row.count();
            let limit = self.settings.stream_limit;
            timeout(limit, evidence.opened())
                .await
                .map_err(|_| register::Error::NoStream { limit })
        };
        // `Register` answers after the kubelet has connected; the stream opens in the background
        // (v1beta1/handler.go, `connectClient`). So the answer alone proves nothing.
        tokio::select! {
            lost = evidence.gone() => return Ending::Lost(lost),
            enrolled = enrolled => if let Err(error) = enrolled {
                return Ending::Failed(error);
            },
        }
        let message = "the kubelet holds our device list stream open";
        self.row.set(Phase::Registered, message, Some(name));
        Ending::Lost(evidence.lost(&mut memory.patience).await)
    }

    /// Reports the end of a registration, and sets the time of the next attempt.
    fn settle(&self, ending: Ending, name: &str, memory: &mut Memory) {
        match ending {
            Ending::Failed(error) => {
                // The socket name differs at each attempt. Without it, equal failures have equal
                // messages, and are logged once.
                let message = error.to_string().replace(name, "our socket");
                self.row.set(error.phase(), &message, None);
                memory.pace.slow(self.settings.backoff);
            }
            Ending::Lost(lost) => {
                self.row.set(Phase::Registering, &lost.to_string(), None);
                tracing::info!(resource = %self.resource, reason = %lost, "registration lost");
                if lost != Lost::Kubelet {
                    memory.pace.rest(BREATH);
                }
                if memory.pace.age() > self.settings.backoff {
                    memory.pace.reset();
                } else {
                    // A loss soon after the registration may come from a second agent that takes
                    // the resource over. Both must slow down.
                    memory.pace.slow(self.settings.spacing * 4);
                }
            }
        }
    }
}

// === impl Memory ===

impl Memory {
    fn new(spacing: Duration) -> Self {
        Self {
            pace: Pace::new(spacing),
            patience: Patience::default(),
            tried: None,
        }
    }
}
