//! The pod resources client: which devices the kubelet counts, and which container holds which.

use std::{io, path::PathBuf, time::Duration};

use kubelet_api::podresources::{
    AllocatableResourcesRequest, AllocatableResourcesResponse, ListPodResourcesRequest,
    ListPodResourcesResponse, pod_resources_lister_client::PodResourcesListerClient,
};
use tonic::transport::{Channel, Endpoint};

use crate::socket;

/// The most bytes of one answer: a node with many pods passes the usual 4 MiB.
const ANSWER_LIMIT: usize = 16 << 20;

/// Asks the kubelet's pod resources socket. Each call connects anew, so that a kubelet that was
/// restarted is no trouble.
#[derive(Clone, Debug)]
pub struct Client {
    path: PathBuf,
    limit: Duration,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody listens.
    #[error("cannot connect to the kubelet's pod resources socket {}: {source}", path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The connection is no gRPC connection.
    #[error("no gRPC on the kubelet's pod resources socket {}: {source}", path.display())]
    Transport {
        /// The socket.
        path: PathBuf,
        /// What went wrong.
        source: tonic::transport::Error,
    },
    /// The kubelet answered with an error.
    #[error("the kubelet's pod resources call {call} failed: {}: {}", source.code(), source.message())]
    Call {
        /// The method.
        call: &'static str,
        /// The kubelet's answer.
        source: Box<tonic::Status>,
    },
    /// It took too long.
    #[error("the kubelet's pod resources call {call} took longer than {limit:?}")]
    Late {
        /// The method.
        call: &'static str,
        /// How long was waited.
        limit: Duration,
    },
}

// === impl Client ===

impl Client {
    /// A client for the socket at `path`, which waits at most `limit` for each answer.
    pub fn new(path: impl Into<PathBuf>, limit: Duration) -> Self {
        Self {
            path: path.into(),
            limit,
        }
    }

    /// Who holds what: every active pod with the devices of its containers.
    pub async fn list(&self) -> Result<ListPodResourcesResponse, Error> {
        let call = "List";
        let answer = async {
            let request = ListPodResourcesRequest {};
            let answer = self.connect().await?.list(request).await;
            answer.map_err(|status| failed(call, status))
        };
        Ok(self.within(call, answer).await?.into_inner())
    }

    /// What the kubelet counts: the healthy devices of every resource that is registered.
    pub async fn allocatable(&self) -> Result<AllocatableResourcesResponse, Error> {
        let call = "GetAllocatableResources";
        let answer = async {
            let request = AllocatableResourcesRequest {};
            let answer = self
                .connect()
                .await?
                .get_allocatable_resources(request)
                .await;
            answer.map_err(|status| failed(call, status))
        };
        Ok(self.within(call, answer).await?.into_inner())
    }

    async fn within<T>(
        &self,
        call: &'static str,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let limit = self.limit;
        tokio::time::timeout(limit, answer)
            .await
            .unwrap_or(Err(Error::Late { call, limit }))
    }

    async fn connect(&self) -> Result<PodResourcesListerClient<Channel>, Error> {
        let stream = tokio::net::UnixStream::connect(&self.path)
            .await
            .map_err(|source| Error::Connect {
                path: self.path.clone(),
                source,
            })?;
        let channel = socket::channel(Endpoint::from_static(socket::AUTHORITY), stream)
            .await
            .map_err(|source| Error::Transport {
                path: self.path.clone(),
                source,
            })?;
        Ok(PodResourcesListerClient::new(channel).max_decoding_message_size(ANSWER_LIMIT))
    }
}

fn failed(call: &'static str, status: tonic::Status) -> Error {
    Error::Call {
        call,
        source: Box::new(status),
    }
}
