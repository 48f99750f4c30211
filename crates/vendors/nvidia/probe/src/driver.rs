//! The driver: found, opened, and opened anew when its library was replaced.

use std::{borrow::Cow, path::PathBuf, sync::Arc};

use model::Driver;
use nvml::{Code, Error, Library, Session};
use probe::{
    Calls,
    protocol::{Problem, ProblemKind},
};

use super::{
    library::{Found, Search},
    stage::Stage,
};

/// The way to the driver.
#[derive(Debug)]
pub(super) struct Connection {
    search: Search,
    calls: Arc<Calls>,
    stage: Stage,
    open: Option<Open>,
    /// Whether the file that the loader takes was known once.
    known: bool,
}

/// An open driver.
#[derive(Debug)]
struct Open {
    session: Arc<Session>,
    found: Found,
}

// === impl Connection ===

impl Connection {
    pub(super) fn new(search: Search, calls: Arc<Calls>, stage: Stage) -> Self {
        Self {
            search,
            calls,
            stage,
            open: None,
            known: false,
        }
    }

    /// The open driver, where it is open.
    pub(super) fn session(&self) -> Option<&Session> {
        self.open.as_ref().map(|open| &*open.session)
    }

    /// The open driver; opens it where it is not, and anew where its file was replaced.
    pub(super) fn ready(&mut self) -> Result<Arc<Session>, Problem> {
        if self.is_stale() {
            tracing::warn!("the driver library was replaced or removed: starting over");
            self.close();
        }
        if let Some(open) = &self.open {
            return Ok(Arc::clone(&open.session));
        }
        let looked = self.watch("find the driver library", || self.search.find());
        let mut found = looked.map_err(|places| self.no_library(&places))?;
        let library = Library::open(&found.path, Arc::clone(&self.calls))
            .map_err(|error| self.not_loadable(&found, &error))?;
        let (calls, known) = (Arc::clone(&self.calls), &mut self.known);
        let call = "find the loaded driver library";
        if !calls.watch(call, None, || found.resolve(known)) {
            return Err(self.no_library(&[found.path]));
        }
        let session = library
            .init()
            .map_err(|(error, words)| failed(&error, &words))?;
        let session = Arc::new(session);
        self.open = Some(Open {
            session: Arc::clone(&session),
            found,
        });
        Ok(session)
    }

    /// Gives the driver back.
    pub(super) fn close(&mut self) {
        if let Some(Open { session, .. }) = self.open.take() {
            self.stage.clear(session);
        }
    }

    /// The driver's own facts, or that it is gone.
    pub(super) fn facts(&self, session: &Session) -> Result<Driver, Problem> {
        let version = match session.driver_version() {
            Ok(version) => version,
            Err(error) if means_gone(&error) => {
                let words = error.code().map_or("", Code::words);
                return Err(failed(&error, words));
            }
            Err(_) => "unknown".to_owned(),
        };
        let open = self.open.as_ref();
        let cuda = session.cuda_version().ok();
        Ok(Driver {
            version,
            cuda: cuda.map(|(major, minor)| format!("{major}.{minor}")),
            library: open.map(|open| open.found.path.display().to_string()),
            instance: None,
        })
    }

    fn is_stale(&self) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| {
            let call = format!("stat {}", open.found.path.display());
            self.watch(call, || open.found.is_stale())
        })
    }

    /// Looks at the driver's files, which may be on a disk that does not answer.
    fn watch<T>(&self, call: impl Into<Cow<'static, str>>, look: impl FnOnce() -> T) -> T {
        self.calls.watch(call, None, look)
    }

    fn no_library(&self, places: &[PathBuf]) -> Problem {
        let places: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
        let remedy = self.search.remedy();
        Problem {
            kind: ProblemKind::NoDriver,
            message: format!(
                "no NVIDIA driver library at {}; {remedy}",
                places.join(", ")
            ),
        }
    }

    fn not_loadable(&self, found: &Found, error: &Error) -> Problem {
        // A library that was found and does not load is a broken driver; one that the loader does
        // not find is none.
        let kind = match found.is_by_name() {
            true => ProblemKind::NoDriver,
            false => ProblemKind::DriverFailed,
        };
        Problem {
            kind,
            message: format!("{error}; {}", self.search.remedy()),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

fn failed(error: &Error, words: &str) -> Problem {
    let words = match words {
        "" => String::new(),
        words => format!(" ({words})"),
    };
    Problem {
        kind: ProblemKind::DriverFailed,
        message: format!("the NVIDIA driver does not work: {error}{words}"),
    }
}

/// Whether the whole driver is gone, rather than one card.
fn means_gone(error: &Error) -> bool {
    matches!(
        error.code(),
        Some(Code::UNINITIALIZED | Code::DRIVER_NOT_LOADED | Code::LIB_RM_VERSION_MISMATCH)
    )
}
