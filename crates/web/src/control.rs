//! The control socket: JSON pages over HTTP on a unix socket that only root can open.
//!
//! `curl --unix-socket /run/ostler/control.sock http://ostler/v1/devices` reads one by hand.

use std::{future::IntoFuture, path::Path, sync::Arc, time::Duration};

use axum::{
    Router,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use host::socket::{Bound, Error};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How long open connections may take to end.
const DRAIN: Duration = Duration::from_millis(300);

/// The pause before a socket that could not be had is tried again.
const PAUSE: Duration = Duration::from_secs(5);

/// Makes the text of a page from what is known at the moment it is asked for.
pub type Render = Arc<dyn Fn() -> Result<String, serde_json::Error> + Send + Sync>;

/// The pages that are served, by path.
#[derive(Clone, Default)]
pub struct Pages {
    pages: Vec<(&'static str, Render)>,
}

// === impl Pages ===

impl Pages {
    /// Adds a page.
    pub fn with<F>(mut self, path: &'static str, render: F) -> Self
    where
        F: Fn() -> Result<String, serde_json::Error> + Send + Sync + 'static,
    {
        self.pages.push((path, Arc::new(render)));
        self
    }

    fn router(self) -> Router {
        let known: Vec<&str> = self.pages.iter().map(|(path, _)| *path).collect();
        let missing = serde_json::json!({ "error": "there is no such page", "pages": known });
        let missing = missing.to_string();
        let mut router = Router::new();
        for (path, render) in self.pages {
            router = router.route(path, get(move || async move { page(&render) }));
        }
        router.fallback(move || async move { (StatusCode::NOT_FOUND, JSON, missing) })
    }
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.pages.iter().map(|(path, _)| path))
            .finish()
    }
}

/// Every answer is JSON.
const JSON: [(axum::http::HeaderName, &str); 1] = [(CONTENT_TYPE, "application/json")];

/// Serves `pages` on a socket at `path` until `cancel`. A socket that cannot be had is tried
/// again: the agent does its work without it.
pub async fn serve(path: &Path, pages: Pages, cancel: CancellationToken) {
    let mut told = false;
    let bound = loop {
        match bind(path) {
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
    let (listener, file) = bound.split();
    tracing::debug!(path = %file.path().display(), "the control socket is served");
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

fn bind(path: &Path) -> Result<Bound, Error> {
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder).map_err(|source| Error::Io {
            path: path.to_owned(),
            source,
        })?;
    }
    Bound::bind(path)
}

fn page(render: &Render) -> Response {
    match render() {
        Ok(text) => (StatusCode::OK, JSON, text).into_response(),
        Err(error) => {
            let text = serde_json::json!({ "error": error.to_string() }).to_string();
            (StatusCode::INTERNAL_SERVER_ERROR, JSON, text).into_response()
        }
    }
}
