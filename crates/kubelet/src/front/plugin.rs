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
    FrontSettings,
    evidence::{LossReason, MissLimit, RegistrationEvidence},
    folder::FolderView,
    known::AllocatableAnswer,
    pace::RetryTimer,
    prepare::options,
    ready::ReadyServer,
    register::{self, register_resource},
    service::ServedOffer,
};
use crate::{socket::SocketNames, status::ResourceRow};

// The kubelet needs a moment to notice the end of our old stream before a new socket registers. If
// the kubelet ended the stream because it is exiting, the pause lets it exit: a registration that
// breaks off in the middle would delay the next one by `Settings::spacing`.
/// Pause between the end of a stream and the next registration.
const BREATH: Duration = Duration::from_millis(100);

/// Device plugin of one resource.
#[derive(Clone, Debug)]
pub(crate) struct ResourcePlugin {
    pub(crate) resource: ResourceName,
    pub(crate) settings: Arc<FrontSettings>,
    pub(crate) names: SocketNames,
    pub(crate) served: watch::Receiver<Arc<ServedOffer>>,
    pub(crate) folder: watch::Receiver<FolderView>,
    pub(crate) answers: watch::Receiver<Option<AllocatableAnswer>>,
    pub(crate) row: ResourceRow,
    pub(crate) kept: ResourceMemory,
}

/// Facts about a resource that outlive its plugins.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceMemory {
    // The kubelet 1.37 refuses a registration with a socket path that it is still connected to
    // (kubernetes PR 135437).
    /// Number of sockets that the resource has had, so that no socket name is used twice.
    pub(crate) sockets: Arc<AtomicU64>,
    /// Times at which cards were granted last, for the placement policy `round-robin`.
    pub(crate) clock: Arc<Mutex<place::GrantHistory>>,
}

/// State that a plugin keeps from one registration to the next.
#[derive(Debug)]
pub(crate) struct PluginMemory {
    pub(crate) pace: RetryTimer,
    pub(crate) patience: MissLimit,
    /// Identity of `kubelet.sock` at the last attempt.
    pub(crate) tried: Option<FileIdentity>,
}

/// End of a registration: lost after it was in force, or failed before.
#[derive(Debug)]
enum RegistrationEnd {
    Lost(LossReason),
    Failed(register::Error),
}

// === impl ResourcePlugin ===

impl ResourcePlugin {
    /// Keeps the resource registered until cancelled.
    pub(crate) async fn keep_registered(self, cancel: CancellationToken) {
        if !self.settings.register {
            return self.serve_only(&cancel).await;
        }
        let mut memory = PluginMemory::new(self.settings.spacing);
        while let Some(ready) = cancel
            .run_until_cancelled(self.wait_until_ready(&mut memory))
            .await
        {
            let held = self.hold_registration(ready, &mut memory, &cancel);
            let Some((ending, name)) = held.await else {
                return;
            };
            self.schedule_retry(ending, &name, &mut memory);
        }
    }

    /// Registers, and watches the registration until it is lost; `None` when cancelled. The server is
    /// stopped in every case before the call returns.
    async fn hold_registration(
        &self,
        ready: ReadyServer,
        memory: &mut PluginMemory,
        cancel: &CancellationToken,
    ) -> Option<(RegistrationEnd, String)> {
        let ReadyServer {
            server,
            name,
            kubelet,
            path,
            identity,
        } = ready;
        let evidence = RegistrationEvidence {
            resource: self.resource.as_str(),
            kubelet: (&path, identity),
            file: server.socket_file(),
            folder: self.folder.clone(),
            line: server.stream_state(),
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
        server.stop_within(self.settings.drain).await;
        Some((ending?, name))
    }

    async fn live(
        &self,
        name: &str,
        kubelet: UnixStream,
        evidence: &RegistrationEvidence<'_>,
        memory: &mut PluginMemory,
    ) -> RegistrationEnd {
        // A retry keeps the phase of the failure before it, so that the same failure is not logged
        // again.
        if !matches!(self.row.current_phase(), Phase::Refused | Phase::Failed) {
            let message = "asking the kubelet";
            self.row.set_phase(Phase::Registering, message, Some(name));
        }
        let enrolled = async {
            let limit = self.settings.register_limit;
            let answer =
                register_resource(&self.resource, name, kubelet, evidence.options, limit).await;
            memory.pace.mark();
            answer?;
            self.row.count_registration();
            let limit = self.settings.stream_limit;
            timeout(limit, evidence.wait_for_stream())
                .await
                .map_err(|_| register::Error::NoStream { limit })
        };
        // `Register` answers after the kubelet has connected; the stream opens in the background
        // (v1beta1/handler.go, `connectClient`). So the answer alone proves nothing.
        tokio::select! {
            lost = evidence.wait_for_replacement() => return RegistrationEnd::Lost(lost),
            enrolled = enrolled => if let Err(error) = enrolled {
                return RegistrationEnd::Failed(error);
            },
        }
        let message = "the kubelet holds our device list stream open";
        self.row.set_phase(Phase::Registered, message, Some(name));
        RegistrationEnd::Lost(evidence.wait_for_loss(&mut memory.patience).await)
    }

    /// Reports the end of a registration, and sets the time of the next attempt.
    fn schedule_retry(&self, ending: RegistrationEnd, name: &str, memory: &mut PluginMemory) {
        match ending {
            RegistrationEnd::Failed(error) => {
                // The socket name differs at each attempt. Without it, equal failures have equal
                // messages, and are logged once.
                let message = error.to_string().replace(name, "our socket");
                self.row.set_phase(error.failure_phase(), &message, None);
                memory.pace.back_off(self.settings.backoff);
            }
            RegistrationEnd::Lost(lost) => {
                self.row
                    .set_phase(Phase::Registering, &lost.to_string(), None);
                tracing::info!(resource = %self.resource, reason = %lost, "registration lost");
                if lost != LossReason::Kubelet {
                    memory.pace.delay_by(BREATH);
                }
                if memory.pace.age() > self.settings.backoff {
                    memory.pace.reset_delay();
                } else {
                    // A loss soon after the registration may come from a second agent that takes
                    // the resource over. Both must slow down.
                    memory.pace.back_off(self.settings.spacing * 4);
                }
            }
        }
    }
}

// === impl PluginMemory ===

impl PluginMemory {
    fn new(spacing: Duration) -> Self {
        Self {
            pace: RetryTimer::new(spacing),
            patience: MissLimit::default(),
            tried: None,
        }
    }
}
