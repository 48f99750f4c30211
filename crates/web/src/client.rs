//! How a command asks a running agent.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use http_body_util::{BodyExt, Empty};
use hyper::{Request, StatusCode, body::Bytes, client::conn::http1, header::HOST};
use hyper_util::rt::TokioIo;
use tokio::{net::UnixStream, time::timeout};

/// How long an agent on the same machine may take.
const LIMIT: Duration = Duration::from_secs(5);

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
    #[error("the agent on {} did not answer within {LIMIT:?}", path.display())]
    Late {
        /// The socket.
        path: PathBuf,
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
    let late = || Error::Late {
        path: socket.to_owned(),
    };
    timeout(LIMIT, ask(socket, page))
        .await
        .map_err(|_| late())?
}

async fn ask(socket: &Path, page: &str) -> Result<Bytes, Error> {
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
    let request = Request::get(page)
        .header(HOST, "ostler")
        .body(Empty::<Bytes>::new())
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
    let text = String::from_utf8_lossy(&body).into_owned();
    Err(Error::Refused { status, text })
}
