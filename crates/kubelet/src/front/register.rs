//! The one call to the kubelet.

use std::time::Duration;

use api::Phase;
use kubelet_api::{
    VERSION,
    deviceplugin::{DevicePluginOptions, RegisterRequest, registration_client::RegistrationClient},
};
use model::ResourceName;
use tokio::{net::UnixStream, time::timeout};
use tonic::{Code, transport::Endpoint};

use crate::socket;

/// The most of a kubelet's message that is passed on.
const MESSAGE: usize = 500;

/// Why a resource is not registered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The kubelet does not want it.
    #[error("the kubelet refuses the registration: {message} ({code:?})")]
    Refused { code: Code, message: String },
    /// The connection ended, or is no gRPC connection.
    #[error("the connection to the kubelet failed: {}", reason(source.as_ref()))]
    Transport {
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No answer.
    #[error("the kubelet did not answer the registration within {limit:?}")]
    Late { limit: Duration },
    /// Accepted, and then nothing.
    #[error("the kubelet accepted the registration and did not ask for the list within {limit:?}")]
    NoStream { limit: Duration },
}

// === impl Error ===

impl Error {
    pub(crate) fn phase(&self) -> Phase {
        match self {
            Self::Refused { .. } => Phase::Refused,
            Self::Transport { .. } | Self::Late { .. } | Self::NoStream { .. } => Phase::Failed,
        }
    }
}

/// Tells the kubelet that `resource` is served on the socket `endpoint` in its folder.
pub(crate) async fn register(
    resource: &ResourceName,
    endpoint: &str,
    kubelet: UnixStream,
    options: DevicePluginOptions,
    limit: Duration,
) -> Result<(), Error> {
    let request = RegisterRequest {
        version: VERSION.to_owned(),
        endpoint: endpoint.to_owned(),
        resource_name: resource.to_string(),
        options: Some(options),
    };
    let call = async {
        let channel = socket::channel(Endpoint::from_static(socket::AUTHORITY), kubelet)
            .await
            .map_err(transport)?;
        let answer = RegistrationClient::new(channel).register(request).await;
        answer.map(|_| ()).map_err(refusal)
    };
    timeout(limit, call)
        .await
        .unwrap_or(Err(Error::Late { limit }))
}

/// tonic makes a status of a broken connection too; only a status that came over the wire is a
/// refusal.
fn refusal(status: tonic::Status) -> Error {
    if std::error::Error::source(&status).is_some() {
        return transport(status);
    }
    Error::Refused {
        code: status.code(),
        message: clean(status.message()),
    }
}

fn transport(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Transport {
        source: error.into(),
    }
}

/// The innermost reason: what is around it says no more than "transport error".
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let innermost = std::iter::successors(Some(error), |error| error.source()).last();
    clean(&innermost.unwrap_or(error).to_string())
}

/// One line of bounded length.
fn clean(message: &str) -> String {
    let mut line = message.replace(char::is_control, " ");
    if let Some((at, _)) = line.char_indices().nth(MESSAGE) {
        line.truncate(at);
        line.push('…');
    }
    line
}
