//! Evidence that a registration is lost. No single sign is enough, so all are watched: our stream,
//! the identity of `kubelet.sock`, our own socket, and the devices that the kubelet counts.

use std::{path::Path, sync::Arc};

use host::{FileIdentity, socket::SocketFile};
use kubelet_api::deviceplugin::DevicePluginOptions;
use tokio::{sync::watch, time::Instant};

use super::{
    folder::FolderView,
    known::AllocatableAnswer,
    prepare::options,
    service::{ServedOffer, StreamState},
    wait::{wait_changed, wait_until},
};

/// Reason why a registration counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LossReason {
    // pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go, `runClient`: after the end of
    // `ListAndWatch` the kubelet disconnects and does not dial again (kubernetes issue 125501).
    /// The kubelet ended the stream. It never opens it again.
    #[error("the kubelet ended the device list stream")]
    Stream,
    /// `kubelet.sock` is a different file now.
    #[error("kubelet.sock was created anew: the kubelet restarted")]
    Kubelet,
    // pkg/kubelet/cm/devicemanager/manager.go, `CleanupPluginDirectory`: a kubelet that starts
    // removes the sockets in its folder.
    /// Our own socket was removed, as a kubelet does when it starts.
    #[error("our socket was removed from the kubelet's folder")]
    Socket,
    /// The kubelet counts no device of the resource, although some are healthy.
    #[error("the kubelet does not count the resource although its stream is open")]
    Forgotten,
    // The kubelet asks for the options once, when it connects
    // (pkg/kubelet/cm/devicemanager/manager.go, `PluginConnected`).
    /// The options of the plugin have changed since the registration.
    #[error("what the kubelet is to call before a container starts was changed in the config")]
    Options,
}

/// Sources of evidence on one registration.
#[derive(Debug)]
pub(crate) struct RegistrationEvidence<'a> {
    pub(crate) resource: &'a str,
    /// Path of the kubelet's socket, and the identity of the file that we connected to.
    pub(crate) kubelet: (&'a Path, FileIdentity),
    pub(crate) file: &'a SocketFile,
    pub(crate) folder: watch::Receiver<FolderView>,
    pub(crate) line: watch::Receiver<StreamState>,
    pub(crate) served: watch::Receiver<Arc<ServedOffer>>,
    pub(crate) answers: watch::Receiver<Option<AllocatableAnswer>>,
    /// Options at the time of the registration.
    pub(crate) options: DevicePluginOptions,
}

/// Number of answers in a row that must lack a resource before it counts as forgotten. It doubles
/// when a new registration changed nothing, because some kubelets never report the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissLimit {
    pub(crate) misses: u32,
}

// === impl RegistrationEvidence ===

impl RegistrationEvidence<'_> {
    /// Waits until the kubelet's socket is a different file, or our own socket was removed.
    pub(crate) async fn wait_for_replacement(&self) -> LossReason {
        let mut folder = self.folder.clone();
        let (path, known) = self.kubelet;
        loop {
            // The published view of the folder may be older than our registration, so the files are
            // read here. A missing kubelet.sock alone is no evidence: the stream is still open.
            if FileIdentity::of_entry(path).is_some_and(|seen| seen != known) {
                return LossReason::Kubelet;
            }
            if !self.file.is_ours() {
                return LossReason::Socket;
            }
            wait_changed(&mut folder).await;
        }
    }

    /// Waits until the kubelet has opened its stream.
    pub(crate) async fn wait_for_stream(&self) {
        wait_until(&self.line, |line| *line != StreamState::NotOpened).await;
    }

    /// Waits until one of the signs tells that the registration is lost.
    pub(crate) async fn wait_for_loss(&self, patience: &mut MissLimit) -> LossReason {
        tokio::select! {
            biased;
            lost = self.wait_for_replacement() => lost,
            () = self.wait_for_stream_end() => LossReason::Stream,
            () = self.forgotten(patience) => LossReason::Forgotten,
            () = self.other_options() => LossReason::Options,
        }
    }

    async fn other_options(&self) {
        wait_until(&self.served, |served| {
            options(&served.offer) != self.options
        })
        .await;
    }

    async fn wait_for_stream_end(&self) {
        let mut line = self.line.clone();
        // An error means that the sender is gone. It belongs to the server's task, so the stream
        // has ended too.
        let _ = line.wait_for(|line| *line == StreamState::Ended).await;
    }

    async fn forgotten(&self, patience: &mut MissLimit) {
        // `GetAllocatableResources` reports healthy devices only (manager.go,
        // `GetAllocatableDevices`), so a resource with none is missing for a good reason. An answer
        // to a question from before the registration says nothing about it.
        let registered = Instant::now();
        let mut answers = self.answers.clone();
        let mut misses = 0;
        loop {
            wait_changed(&mut answers).await;
            let Some(answer) = answers.borrow_and_update().clone() else {
                continue;
            };
            let healthy = self.served.borrow().offer.healthy_count();
            if answer.resources.contains(self.resource) {
                *patience = MissLimit::default();
                misses = 0;
            } else if answer.asked > registered && healthy > 0 {
                misses += 1;
            } else {
                misses = 0;
            }
            if misses >= patience.misses {
                patience.double_limit();
                return;
            }
        }
    }
}

// === impl MissLimit ===

impl Default for MissLimit {
    fn default() -> Self {
        Self { misses: 2 }
    }
}

impl MissLimit {
    /// Upper limit of `misses`: half an hour with a call every ten seconds.
    const MOST: u32 = 180;

    fn double_limit(&mut self) {
        self.misses = (self.misses * 2).min(Self::MOST);
    }
}
