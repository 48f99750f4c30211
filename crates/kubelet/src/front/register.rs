//! Call of `Register`, the only one that goes to the kubelet.

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

/// Length limit, in characters, of the kubelet's messages in our log and status.
const MESSAGE: usize = 500;

/// Error of a registration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    // The reason is the kubelet's own text: an unsupported version, an illegal resource name, or a
    // failed connection to our socket (pkg/kubelet/cm/devicemanager/plugin/v1beta1/server.go,
    // `Register`).
    /// The kubelet answered with an error status.
    #[error("the kubelet refuses the registration: {message} ({code:?})")]
    Refused { code: Code, message: String },
    /// The connection broke, or the peer does not speak gRPC.
    #[error("the connection to the kubelet failed: {}", reason(source.as_ref()))]
    Transport {
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The kubelet did not answer in time.
    #[error("the kubelet did not answer the registration within {limit:?}")]
    Late { limit: Duration },
    /// The kubelet accepted the registration and did not open its stream in time.
    #[error("the kubelet accepted the registration and did not ask for the list within {limit:?}")]
    NoStream { limit: Duration },
}

// === impl Error ===

impl Error {
    pub(crate) fn failure_phase(&self) -> Phase {
        match self {
            Self::Refused { .. } => Phase::Refused,
            Self::Transport { .. } | Self::Late { .. } | Self::NoStream { .. } => Phase::Failed,
        }
    }
}

/// Registers `resource`, served on the socket `endpoint` in the kubelet's folder.
pub(crate) async fn register_resource(
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
        let channel = socket::connect_channel(Endpoint::from_static(socket::AUTHORITY), kubelet)
            .await
            .map_err(transport)?;
        let answer = RegistrationClient::new(channel).register(request).await;
        answer.map(|_| ()).map_err(to_refusal)
    };
    timeout(limit, call)
        .await
        .unwrap_or(Err(Error::Late { limit }))
}

/// Makes the error of a failed call: a refusal or a broken connection.
fn to_refusal(status: tonic::Status) -> Error {
    // tonic makes a status of a broken connection too, and keeps the cause as its source. A status
    // without a source came over the wire.
    if std::error::Error::source(&status).is_some() {
        return transport(status);
    }
    Error::Refused {
        code: status.code(),
        message: clean_message(status.message()),
    }
}

fn transport(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Transport {
        source: error.into(),
    }
}

/// Text of the innermost cause.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    // tonic's outer errors say no more than "transport error".
    let innermost = std::iter::successors(Some(error), |error| error.source()).last();
    clean_message(&innermost.unwrap_or(error).to_string())
}

/// Makes one line of the message, with at most `MESSAGE` characters.
fn clean_message(message: &str) -> String {
    let mut line = message.replace(char::is_control, " ");
    if let Some((at, _)) = line.char_indices().nth(MESSAGE) {
        line.truncate(at);
        line.push('…');
    }
    line
}
