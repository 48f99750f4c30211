//! What tells that a registration is lost. No single sign is enough, so all are watched: our
//! stream, the identity of `kubelet.sock`, our own socket, and what the kubelet counts.

use std::{path::Path, sync::Arc};

use host::{FileIdentity, socket::File};
use kubelet_api::deviceplugin::DevicePluginOptions;
use tokio::{sync::watch, time::Instant};

use super::{
    folder::View,
    known::Answer,
    prepare::options,
    service::{Line, Served},
    wait::{changed, until},
};

/// Why a registration is held to be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lost {
    /// The kubelet ended the stream, and it never opens it again.
    #[error("the kubelet ended the device list stream")]
    Stream,
    /// Another kubelet socket is there.
    #[error("kubelet.sock was created anew: the kubelet restarted")]
    Kubelet,
    /// Our own socket is gone, as when the kubelet starts and empties its folder.
    #[error("our socket was removed from the kubelet's folder")]
    Socket,
    /// The kubelet counts no device of ours.
    #[error("the kubelet does not count the resource although its stream is open")]
    Forgotten,
    /// The kubelet asks for the options once, and they are others now.
    #[error("what the kubelet is to call before a container starts was changed in the config")]
    Options,
}

/// Everything that is watched for one registration.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) resource: &'a str,
    /// The kubelet's socket, and which one we spoke to.
    pub(crate) kubelet: (&'a Path, FileIdentity),
    pub(crate) file: &'a File,
    pub(crate) folder: watch::Receiver<View>,
    pub(crate) line: watch::Receiver<Line>,
    pub(crate) served: watch::Receiver<Arc<Served>>,
    pub(crate) answers: watch::Receiver<Option<Answer>>,
    /// What the kubelet was told of the plugin.
    pub(crate) options: DevicePluginOptions,
}

/// How many answers in a row must lack a resource before it counts as forgotten. Grows when a new
/// registration changed nothing, because some kubelets never tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    pub(crate) misses: u32,
}

// === impl Evidence ===

impl Evidence<'_> {
    /// Waits until the kubelet we spoke to or our own socket is gone.
    pub(crate) async fn gone(&self) -> Lost {
        let mut folder = self.folder.clone();
        let (path, known) = self.kubelet;
        loop {
            // What the folder showed may be older than our registration, so we look ourselves. A
            // missing kubelet.sock alone is no evidence: the stream is still open.
            if FileIdentity::of_entry(path).is_some_and(|seen| seen != known) {
                return Lost::Kubelet;
            }
            if !self.file.is_ours() {
                return Lost::Socket;
            }
            changed(&mut folder).await;
        }
    }

    /// Waits until the kubelet opened its stream.
    pub(crate) async fn opened(&self) {
        until(&self.line, |line| *line != Line::Silent).await;
    }

    /// Waits until anything tells that the registration is lost.
    pub(crate) async fn lost(&self, patience: &mut Patience) -> Lost {
        tokio::select! {
            biased;
            lost = self.gone() => lost,
            () = self.ended() => Lost::Stream,
            () = self.forgotten(patience) => Lost::Forgotten,
            () = self.other_options() => Lost::Options,
        }
    }

    async fn other_options(&self) {
        until(&self.served, |served| {
            options(&served.offer) != self.options
        })
        .await;
    }

    async fn ended(&self) {
        let mut line = self.line.clone();
        // The sender lives in the server's task: without it there is no stream either.
        let _ = line.wait_for(|line| *line == Line::Ended).await;
    }

    async fn forgotten(&self, patience: &mut Patience) {
        let registered = Instant::now();
        let mut answers = self.answers.clone();
        let mut misses = 0;
        loop {
            changed(&mut answers).await;
            let Some(answer) = answers.borrow_and_update().clone() else {
                continue;
            };
            let healthy = self.served.borrow().offer.healthy();
            if answer.resources.contains(self.resource) {
                *patience = Patience::default();
                misses = 0;
            } else if answer.asked > registered && healthy > 0 {
                misses += 1;
            } else {
                misses = 0;
            }
            if misses >= patience.misses {
                patience.grow();
                return;
            }
        }
    }
}

// === impl Patience ===

impl Default for Patience {
    fn default() -> Self {
        Self { misses: 2 }
    }
}

impl Patience {
    /// At most half an hour at the usual pace of ten seconds.
    const MOST: u32 = 180;

    fn grow(&mut self) {
        self.misses = (self.misses * 2).min(Self::MOST);
    }
}
