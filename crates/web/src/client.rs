//! How a command asks a running agent.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use api::Refusal;
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

/// How long an agent on the same machine may take to show a page.
const LIMIT: Duration = Duration::from_secs(5);

/// How long it may take to carry out an action.
const ACTION_LIMIT: Duration = Duration::from_secs(30);

/// Why an agent did not answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody listens.
    #[error("no agent answers on {}", path.display())]
    Absent {
        /// The socket.
        path: PathBuf,
    },
    /// The socket is not for this user.
    #[error("{} is for root alone: run the command as root", path.display())]
    Denied {
        /// The socket.
        path: PathBuf,
    },
    /// The connection failed.
    #[error("cannot talk to the agent on {}: {source}", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The agent does not answer in time.
    #[error("the agent on {} did not answer within {limit:?}", path.display())]
    Late {
        /// The socket.
        path: PathBuf,
        /// The time it had.
        limit: Duration,
    },
    /// The agent does not carry out what it was asked for.
    #[error("{}", said(refusal))]
    Declined {
        /// Why not.
        refusal: Refusal,
    },
    /// The agent answers with an error.
    #[error("the agent answers {status}: {text}")]
    Refused {
        /// The status.
        status: StatusCode,
        /// What it says.
        text: String,
    },
}

/// Asks the agent behind `socket` for a page.
pub async fn get(socket: &Path, page: &str) -> Result<Bytes, Error> {
    exchange(socket, Method::GET, page, Bytes::new(), LIMIT).await
}

/// Asks the agent behind `socket` to do something.
pub async fn post(socket: &Path, action: &str, request: &impl Serialize) -> Result<Bytes, Error> {
    let body = serde_json::to_vec(request).map_err(|error| Error::Io {
        path: socket.to_owned(),
        source: io::Error::other(error),
    })?;
    exchange(socket, Method::POST, action, body.into(), ACTION_LIMIT).await
}

async fn exchange(
    socket: &Path,
    method: Method,
    page: &str,
    body: Bytes,
    limit: Duration,
) -> Result<Bytes, Error> {
    let late = || Error::Late {
        path: socket.to_owned(),
        limit,
    };
    timeout(limit, ask(socket, method, page, body))
        .await
        .map_err(|_| late())?
}

async fn ask(socket: &Path, method: Method, page: &str, body: Bytes) -> Result<Bytes, Error> {
    let path = || socket.to_owned();
    let failed = |error: hyper::Error| Error::Io {
        path: path(),
        source: io::Error::other(error),
    };
    let stream = UnixStream::connect(socket).await.map_err(|source| {
        use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
        match source.kind() {
            NotFound | ConnectionRefused => Error::Absent { path: path() },
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
            Ok(()) => Error::Absent { path: path() },
        }),
    };
    if status == StatusCode::OK {
        return Ok(body);
    }
    if let (StatusCode::BAD_REQUEST | StatusCode::CONFLICT, Ok(refusal)) =
        (status, serde_json::from_slice(&body))
    {
        return Err(Error::Declined { refusal });
    }
    let text = String::from_utf8_lossy(&body).into_owned();
    Err(Error::Refused { status, text })
}

/// A refusal in one line.
fn said(refusal: &Refusal) -> String {
    match refusal.remedy.as_str() {
        "" => refusal.error.clone(),
        remedy => format!("{}: {remedy}", refusal.error),
    }
}
