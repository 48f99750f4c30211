//! The driver: finds and opens its library, and opens it anew when the file was replaced.

use std::{borrow::Cow, path::PathBuf, sync::Arc};

use model::Driver;
use nvml::{Error, NvmlLibrary, NvmlSession, ReturnCode};
use probe::{
    CallTable,
    protocol::{Problem, ProblemKind},
};

use super::{
    library::{DriverLibrary, LibrarySearch},
    stage::SharedDriver,
};

/// Connection to the driver, open or not.
#[derive(Debug)]
pub(super) struct DriverConnection {
    search: LibrarySearch,
    calls: Arc<CallTable>,
    stage: SharedDriver,
    open: Option<OpenDriver>,
    /// True once the file behind the loader's name was found in the process map.
    known: bool,
}

/// Open driver and the file that it was loaded from.
#[derive(Debug)]
struct OpenDriver {
    session: Arc<NvmlSession>,
    found: DriverLibrary,
}

// === impl DriverConnection ===

impl DriverConnection {
    pub(super) fn new(search: LibrarySearch, calls: Arc<CallTable>, stage: SharedDriver) -> Self {
        Self {
            search,
            calls,
            stage,
            open: None,
            known: false,
        }
    }

    /// Returns the open driver, if any.
    pub(super) fn open_session(&self) -> Option<&NvmlSession> {
        self.open.as_ref().map(|open| &*open.session)
    }

    /// Returns the open driver. Opens it if it is closed, and anew if its file was replaced.
    ///
    /// # Errors
    /// No library was found, it cannot be loaded, or NVML's initialisation failed.
    pub(super) fn ensure_open(&mut self) -> Result<Arc<NvmlSession>, Problem> {
        // A driver upgrade replaces the file while the old library stays loaded. Once the new
        // kernel module runs, the old library answers LIB_RM_VERSION_MISMATCH.
        if self.is_stale() {
            tracing::warn!("the driver library was replaced or removed: starting over");
            self.close_driver();
        }
        if let Some(open) = &self.open {
            return Ok(Arc::clone(&open.session));
        }
        let looked = self.watch_file_call("find the driver library", || self.search.find_library());
        let mut found = looked.map_err(|places| self.no_library(&places))?;
        let library = NvmlLibrary::open_library(&found.path, Arc::clone(&self.calls))
            .map_err(|error| self.not_loadable(&found, &error))?;
        let (calls, known) = (Arc::clone(&self.calls), &mut self.known);
        let call = "find the loaded driver library";
        // glibc returns a library that it could not unload again under the same name, even if the
        // file was removed long ago.
        if !calls.watch_operation(call, None, || found.resolve_loaded(known)) {
            return Err(self.no_library(&[found.path]));
        }
        let session = library
            .initialize()
            .map_err(|(error, words)| driver_failed(&error, &words))?;
        let session = Arc::new(session);
        self.open = Some(OpenDriver {
            session: Arc::clone(&session),
            found,
        });
        Ok(session)
    }

    /// Closes the driver, once the event thread has let go of it.
    pub(super) fn close_driver(&mut self) {
        if let Some(OpenDriver { session, .. }) = self.open.take() {
            self.stage.release_driver(session);
        }
    }

    /// Reads driver version, CUDA version and library path. Only the path is required.
    ///
    /// # Errors
    /// The driver was unloaded or replaced.
    pub(super) fn read_driver_facts(&self, session: &NvmlSession) -> Result<Driver, Problem> {
        let version = match session.driver_version() {
            Ok(version) => version,
            Err(error) if means_gone(&error) => {
                let words = error.return_code().map_or("", ReturnCode::words);
                return Err(driver_failed(&error, words));
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

    /// Returns true if the library's file was replaced or removed.
    fn is_stale(&self) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| {
            let call = format!("stat {}", open.found.path.display());
            self.watch_file_call(call, || open.found.is_stale())
        })
    }

    /// Runs file access as a recorded call: the driver's files may be on a disk that does not
    /// answer.
    fn watch_file_call<T>(
        &self,
        call: impl Into<Cow<'static, str>>,
        look: impl FnOnce() -> T,
    ) -> T {
        self.calls.watch_operation(call, None, look)
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

    fn not_loadable(&self, found: &DriverLibrary, error: &Error) -> Problem {
        // A file that was found and cannot be loaded is a broken driver. A name that the loader
        // does not find is an absent driver.
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

impl Drop for DriverConnection {
    fn drop(&mut self) {
        self.close_driver();
    }
}

/// Makes the problem of a driver that does not work. `words` explains its code.
fn driver_failed(error: &Error, words: &str) -> Problem {
    let words = match words {
        "" => String::new(),
        words => format!(" ({words})"),
    };
    Problem {
        kind: ProblemKind::DriverFailed,
        message: format!("the NVIDIA driver does not work: {error}{words}"),
    }
}

/// Returns true if the error concerns the whole driver rather than one card.
fn means_gone(error: &Error) -> bool {
    matches!(
        error.return_code(),
        Some(
            ReturnCode::UNINITIALIZED
                | ReturnCode::DRIVER_NOT_LOADED
                | ReturnCode::LIB_RM_VERSION_MISMATCH
        )
    )
}
