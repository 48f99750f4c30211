//! Client of the kubelet's pod resources API: the devices that the kubelet counts, and the containers
//! that hold them.

use std::{io, path::PathBuf, time::Duration};

use kubelet_api::podresources::{
    AllocatableResourcesRequest, AllocatableResourcesResponse, ListPodResourcesRequest,
    ListPodResourcesResponse, pod_resources_lister_client::PodResourcesListerClient,
};
use tonic::transport::{Channel, Endpoint};

use crate::socket;

// The answer of a node with many pods is larger than gRPC's default of 4 MiB. Kubernetes' own tests
// use 16 MiB (test/e2e_node/util.go, `defaultPodResourcesMaxSize`).
/// Size limit of one answer, in bytes.
const ANSWER_LIMIT: usize = 16 << 20;

/// Client of the kubelet's pod resources socket. Each call makes a new connection, so that it works
/// after a restart of the kubelet.
#[derive(Clone, Debug)]
pub struct PodResourcesClient {
    path: PathBuf,
    limit: Duration,
}

/// Error of a call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The socket does not exist or refuses the connection.
    #[error("cannot connect to the kubelet's pod resources socket {}: {source}", path.display())]
    Connect {
        /// Path of the socket.
        path: PathBuf,
        /// Error of connect(2).
        source: io::Error,
    },
    /// The peer does not speak gRPC.
    #[error("no gRPC on the kubelet's pod resources socket {}: {source}", path.display())]
    Transport {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the HTTP/2 handshake.
        source: tonic::transport::Error,
    },
    // `ResourceExhausted` is the kubelet's limit of 100 calls per second for the whole socket.
    /// The kubelet answered with an error status.
    #[error("the kubelet's pod resources call {call} failed: {}: {}", source.code(), source.message())]
    Call {
        /// Name of the gRPC method.
        call: &'static str,
        /// Status in the kubelet's answer.
        source: Box<tonic::Status>,
    },
    /// The kubelet did not answer in time.
    #[error("the kubelet's pod resources call {call} took longer than {limit:?}")]
    Late {
        /// Name of the gRPC method.
        call: &'static str,
        /// Time limit of the call.
        limit: Duration,
    },
}

// === impl PodResourcesClient ===

impl PodResourcesClient {
    /// Makes a client for the socket at `path` that waits at most `limit` for each answer. It does
    /// not connect yet.
    pub fn new(path: impl Into<PathBuf>, limit: Duration) -> Self {
        Self {
            path: path.into(),
            limit,
        }
    }

    // Active pods only: a pod that has ended is absent although the kubelet may still hold its
    // devices (feature gate `KubeletPodResourcesListUseActivePods`, on since 1.34).
    /// Lists every active pod with the devices of its containers.
    pub async fn list_pods(&self) -> Result<ListPodResourcesResponse, Error> {
        let call = "List";
        let answer = async {
            let request = ListPodResourcesRequest {};
            let answer = self.connect_lister().await?.list(request).await;
            answer.map_err(|status| to_call_error(call, status))
        };
        Ok(self.within(call, answer).await?.into_inner())
    }

    // Healthy devices only (pkg/kubelet/cm/devicemanager/manager.go, `GetAllocatableDevices`).
    /// Lists the healthy devices of every registered resource, as the kubelet counts them.
    pub async fn list_allocatable(&self) -> Result<AllocatableResourcesResponse, Error> {
        let call = "GetAllocatableResources";
        let answer = async {
            let request = AllocatableResourcesRequest {};
            let answer = self
                .connect_lister()
                .await?
                .get_allocatable_resources(request)
                .await;
            answer.map_err(|status| to_call_error(call, status))
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

    async fn connect_lister(&self) -> Result<PodResourcesListerClient<Channel>, Error> {
        let stream = tokio::net::UnixStream::connect(&self.path)
            .await
            .map_err(|source| Error::Connect {
                path: self.path.clone(),
                source,
            })?;
        let channel = socket::connect_channel(Endpoint::from_static(socket::AUTHORITY), stream)
            .await
            .map_err(|source| Error::Transport {
                path: self.path.clone(),
                source,
            })?;
        Ok(PodResourcesListerClient::new(channel).max_decoding_message_size(ANSWER_LIMIT))
    }
}

fn to_call_error(call: &'static str, status: tonic::Status) -> Error {
    Error::Call {
        call,
        source: Box::new(status),
    }
}
