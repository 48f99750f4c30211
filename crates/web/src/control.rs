//! The control socket: JSON pages (GET) and actions (POST) over HTTP, on a unix socket that only
//! root can open.
//!
//! To read a page by hand: `curl --unix-socket /run/ostler/control.sock http://ostler/v1/devices`

use std::{future::IntoFuture, path::Path, pin::Pin, sync::Arc, time::Duration};

use api::OrderRefusal;
use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, rejection::BytesRejection},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use host::socket::{BoundSocket, Error};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Time for open connections to end at shutdown. Without a limit, a client that connects and sends
/// nothing would prevent the end (hyperium/hyper issue 4170).
const DRAIN: Duration = Duration::from_millis(300);

/// Time between two attempts to open the socket.
const PAUSE: Duration = Duration::from_secs(5);

/// Renders a page from the present state, as JSON.
pub type RenderPage = Arc<dyn Fn() -> Result<String, serde_json::Error> + Send + Sync>;

/// Carries out an order and returns the answer, as JSON.
pub type CarryOut = Arc<dyn Fn(Bytes) -> OrderFuture + Send + Sync>;

/// Future of an action.
pub type OrderFuture = Pin<Box<dyn Future<Output = Result<String, OrderRefusal>> + Send>>;

/// Size limit of a request, in bytes.
const BODY_LIMIT: usize = 64 << 10;

/// Pages and actions of the socket, by path.
#[derive(Clone, Default)]
pub struct ControlPages {
    pages: Vec<(&'static str, RenderPage)>,
    actions: Vec<(&'static str, CarryOut)>,
}

// === impl ControlPages ===

impl ControlPages {
    /// Adds a page. `render` is called for each request and must not block.
    pub fn with_page<F>(mut self, path: &'static str, render: F) -> Self
    where
        F: Fn() -> Result<String, serde_json::Error> + Send + Sync + 'static,
    {
        self.pages.push((path, Arc::new(render)));
        self
    }

    /// Adds an action: a POST request whose body is JSON of type `T`. A body that is not is refused
    /// with status 400.
    pub fn with_action<T, F, W>(mut self, path: &'static str, act: F) -> Self
    where
        T: serde::de::DeserializeOwned,
        F: Fn(T) -> W + Send + Sync + 'static,
        W: Future<Output = Result<String, OrderRefusal>> + Send + 'static,
    {
        let act = move |body: Bytes| -> OrderFuture {
            match serde_json::from_slice(&body) {
                Ok(request) => Box::pin(act(request)),
                Err(error) => Box::pin(std::future::ready(Err(unread(&error)))),
            }
        };
        self.actions.push((path, Arc::new(act)));
        self
    }

    /// Returns the router, for [`serve`] or for tests without a socket. An unknown path answers 404
    /// with the list of paths.
    pub fn router(self) -> Router {
        let known: Vec<&str> = self.pages.iter().map(|(path, _)| *path).collect();
        let actions: Vec<&str> = self.actions.iter().map(|(path, _)| *path).collect();
        let missing = serde_json::json!({
            "error": "there is no such page", "pages": known, "actions": actions,
        });
        let missing = missing.to_string();
        let mut router = Router::new();
        for (path, render) in self.pages {
            router = router.route(path, get(move || async move { render_page(&render) }));
        }
        for (path, act) in self.actions {
            let answer = move |body: Result<Bytes, BytesRejection>| async move {
                match body {
                    Ok(body) => order_response(act(body).await),
                    Err(rejection) => answer_bad_body(&rejection),
                }
            };
            router = router.route(path, post(answer));
        }
        let wrong = serde_json::json!({
            "error": "pages are read with GET, actions are asked for with POST",
        });
        let wrong = wrong.to_string();
        router
            // The default of axum is 2 MB; an order is far smaller.
            .layer(DefaultBodyLimit::max(BODY_LIMIT))
            .method_not_allowed_fallback(move || async move {
                (StatusCode::METHOD_NOT_ALLOWED, JSON, wrong)
            })
            .fallback(move || async move { (StatusCode::NOT_FOUND, JSON, missing) })
    }
}

impl std::fmt::Debug for ControlPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.pages.iter().map(|(path, _)| path))
            .entries(self.actions.iter().map(|(path, _)| path))
            .finish()
    }
}

/// Content type of all answers.
const JSON: [(axum::http::HeaderName, &str); 1] = [(CONTENT_TYPE, "application/json")];

/// Serves `pages` on a socket at `path` until `cancel`. A socket that cannot be opened is tried
/// again every 5 seconds: the agent works without it.
pub async fn serve(path: &Path, pages: ControlPages, cancel: CancellationToken) {
    let mut told = false;
    let bound = loop {
        match bind_socket(path) {
            Ok(bound) => break bound,
            Err(error) if !told => {
                told = true;
                tracing::warn!(%error, "the control socket is not served; trying again");
            }
            Err(_) => {}
        }
        tokio::select! {
            () = cancel.cancelled() => return,
            () = sleep(PAUSE) => {}
        }
    };
    let (listener, file) = bound.into_parts();
    tracing::debug!(path = %file.socket_path().display(), "the control socket is served");
    let stop = cancel.clone();
    let server = axum::serve(listener, pages.router())
        .with_graceful_shutdown(async move { stop.cancelled().await })
        .into_future();
    let ended = async {
        cancel.cancelled().await;
        sleep(DRAIN).await;
    };
    tokio::select! {
        _ = server => {}
        () = ended => {}
    }
}

/// Opens the socket, and creates its folder.
fn bind_socket(path: &Path) -> Result<BoundSocket, Error> {
    if let Some(folder) = path.parent() {
        // `/run` is a tmpfs, so the folder is missing after each boot.
        fs_err::create_dir_all(folder).map_err(|source| Error::Io {
            path: path.to_owned(),
            source,
        })?;
    }
    BoundSocket::bind_path(path)
}

fn render_page(render: &RenderPage) -> Response {
    match render() {
        Ok(text) => (StatusCode::OK, JSON, text).into_response(),
        Err(error) => {
            let text = serde_json::json!({ "error": error.to_string() }).to_string();
            (StatusCode::INTERNAL_SERVER_ERROR, JSON, text).into_response()
        }
    }
}

/// Answers a request whose body is too long or incomplete.
fn answer_bad_body(rejection: &BytesRejection) -> Response {
    let text = serde_json::json!({ "error": rejection.body_text() }).to_string();
    (rejection.status(), JSON, text).into_response()
}

/// Refuses a body that is not the expected JSON.
fn unread(error: &serde_json::Error) -> OrderRefusal {
    let error = format!("the request cannot be read: {error}");
    OrderRefusal::bad_request(error, "send JSON as docs/health.md shows it")
}

fn order_response(done: Result<String, OrderRefusal>) -> Response {
    match done {
        Ok(text) => (StatusCode::OK, JSON, text).into_response(),
        Err(refusal) => {
            let status = StatusCode::from_u16(refusal.status);
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let text = serde_json::json!(refusal).to_string();
            (status, JSON, text).into_response()
        }
    }
}
