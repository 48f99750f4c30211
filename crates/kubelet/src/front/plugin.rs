//! The life of one resource: wait for the kubelet, serve, register, watch the evidence, begin
//! again. One server at a time, each under a socket name of its own.

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

/// How long a kubelet gets to notice that our old stream ended, before it hears of a new socket;
/// and to be gone, if it ended the stream because it ends itself: an attempt that a dying kubelet
/// cuts off would keep us from the next one for a second.
const BREATH: Duration = Duration::from_millis(100);

/// One resource's plugin.
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

/// What outlives the plugins of a resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    /// How many sockets the resource had, so that no name comes again.
    pub(crate) sockets: Arc<AtomicU64>,
    /// When cards were granted last, for placement that goes round.
    pub(crate) clock: Arc<Mutex<place::Clock>>,
}

/// What a plugin remembers from one registration to the next.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) pace: Pace,
    pub(crate) patience: Patience,
    /// The kubelet of the last attempt.
    pub(crate) tried: Option<FileIdentity>,
}

/// How a registration ended.
#[derive(Debug)]
enum Ending {
    Lost(Lost),
    Failed(register::Error),
}

// === impl Plugin ===

impl Plugin {
    /// Keeps the resource registered until it is cancelled.
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

    /// Registers and holds the registration until it is lost; `None` when cancelled. The server is
    /// stopped in any case, before anything else is tried: up to 1.36 the kubelet takes the end of
    /// an old stream for the end of the new one.
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
        // A retry stays what the failure before made it, so that nothing is logged twice.
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

    /// Tells why a registration ended, and how soon the next one may begin.
    fn settle(&self, ending: Ending, name: &str, memory: &mut Memory) {
        match ending {
            Ending::Failed(error) => {
                // Our name is another one at each attempt; the reason is the same.
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
                    // Two instances that take the resource from each other must calm down.
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
