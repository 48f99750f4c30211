//! Client of the control socket, for the commands.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use api::OrderRefusal;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, StatusCode,
    body::Bytes,
    client::conn::http1,
    header::{CONTENT_TYPE, HOST},
};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::{net::UnixStream, time::timeout};

/// Time limit for a page. The agent answers from memory, without a driver call.
const LIMIT: Duration = Duration::from_secs(5);

/// Time limit for an action. A release waits for driver handles, and each order for the disk.
const ACTION_LIMIT: Duration = Duration::from_secs(30);

/// Failure of a request to the agent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No agent listens on the socket.
    #[error("no agent answers on {}", path.display())]
    NoAgent {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The user may not open the socket.
    #[error("{} is for root alone: run the command as root", path.display())]
    Denied {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The connection failed.
    #[error("cannot talk to the agent on {}: {source}", path.display())]
    Io {
        /// Path of the socket.
        path: PathBuf,
        /// The error of the connection.
        source: io::Error,
    },
    /// The agent did not answer in time.
    #[error("the agent on {} did not answer within {limit:?}", path.display())]
    TimedOut {
        /// Path of the socket.
        path: PathBuf,
        /// Time limit of the request.
        limit: Duration,
    },
    /// The agent refused the order, with a reason.
    #[error("{}", describe_refusal(refusal))]
    OrderRefused {
        /// Reason and remedy.
        refusal: OrderRefusal,
    },
    /// The agent answered with another status than 200.
    #[error("the agent answers {status}: {text}")]
    ErrorStatus {
        /// HTTP status.
        status: StatusCode,
        /// Body of the answer.
        text: String,
    },
}

/// Reads a page from the agent behind `socket`. Returns the body of the answer.
///
/// # Errors
/// If no agent answers within 5 seconds, or with another status than 200.
pub async fn read_page(socket: &Path, page: &str) -> Result<Bytes, Error> {
    send_with_limit(socket, Method::GET, page, Bytes::new(), LIMIT).await
}

/// Sends an order to the agent behind `socket`. Returns the body of the answer.
///
/// # Errors
/// If no agent answers within 30 seconds, or if the agent refuses the order. The refusal then has
/// the reason and a remedy.
pub async fn post(socket: &Path, action: &str, request: &impl Serialize) -> Result<Bytes, Error> {
    let body = serde_json::to_vec(request).map_err(|error| Error::Io {
        path: socket.to_owned(),
        source: io::Error::other(error),
    })?;
    send_with_limit(socket, Method::POST, action, body.into(), ACTION_LIMIT).await
}

/// Sends a request and waits for the answer, within a time limit.
async fn send_with_limit(
    socket: &Path,
    method: Method,
    page: &str,
    body: Bytes,
    limit: Duration,
) -> Result<Bytes, Error> {
    let late = || Error::TimedOut {
        path: socket.to_owned(),
        limit,
    };
    timeout(limit, send_request(socket, method, page, body))
        .await
        .map_err(|_| late())?
}

/// Opens a connection, sends a request, and reads the answer.
async fn send_request(
    socket: &Path,
    method: Method,
    page: &str,
    body: Bytes,
) -> Result<Bytes, Error> {
    let path = || socket.to_owned();
    let failed = |error: hyper::Error| Error::Io {
        path: path(),
        source: io::Error::other(error),
    };
    let stream = UnixStream::connect(socket).await.map_err(|source| {
        use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
        match source.kind() {
            // A socket file without a listener is left by an agent that was killed.
            NotFound | ConnectionRefused => Error::NoAgent { path: path() },
            PermissionDenied => Error::Denied { path: path() },
            _ => Error::Io {
                path: path(),
                source,
            },
        }
    })?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    let request = Request::builder()
        .method(method)
        .uri(page)
        // HTTP/1.1 requires a host (RFC 9112, section 3.2); the value is not used.
        .header(HOST, "ostler")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(body))
        .expect("pages are constants of ours");
    let exchange = async {
        let answer = sender.send_request(request).await.map_err(failed)?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(failed)?;
        Ok((status, body.to_bytes()))
    };
    // The connection makes progress only while it is polled; it ends with the exchange.
    let (status, body) = tokio::select! {
        result = exchange => result?,
        result = connection => return Err(match result {
            Err(error) => failed(error),
            Ok(()) => Error::NoAgent { path: path() },
        }),
    };
    if status == StatusCode::OK {
        return Ok(body);
    }
    if let (StatusCode::BAD_REQUEST | StatusCode::CONFLICT, Ok(refusal)) =
        (status, serde_json::from_slice(&body))
    {
        return Err(Error::OrderRefused { refusal });
    }
    let text = String::from_utf8_lossy(&body).into_owned();
    Err(Error::ErrorStatus { status, text })
}

/// Describes a refusal in one line.
fn describe_refusal(refusal: &OrderRefusal) -> String {
    match refusal.remedy.as_str() {
        "" => refusal.error.clone(),
        remedy => format!("{}: {remedy}", refusal.error),
    }
}
