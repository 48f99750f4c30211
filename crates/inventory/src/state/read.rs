//! Reads the state file of an earlier agent. Tries until the disk answers.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use host::{
    lane::{self, Lane},
    small,
};
use tokio::time::{Instant, sleep_until};

use super::{MOST, SavedState};

/// Time after which an attempt is reported as late. The disk may be on a network.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time between two attempts.
const PAUSE: Duration = Duration::from_secs(2);

/// Result of an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LoadedState {
    /// The file was read.
    State(Box<SavedState>),
    /// There is no file, or it is malformed.
    NoState,
    /// The file may contain a state, but cannot be read. Contains the reason.
    Unread(String),
}

/// Reads a state file, once for each path.
#[derive(Debug, Default)]
pub(crate) struct StateReader {
    file: Option<PathBuf>,
    /// Paths that were read. Their content since then is from this agent.
    known: BTreeSet<PathBuf>,
    /// An attempt that has not ended. At most one at a time: a thread that hangs in a read cannot
    /// be ended.
    reading: Lane<io::Result<Option<SavedState>>>,
    /// Earliest time of the next attempt.
    next: Option<Instant>,
    /// The problem that was logged last, so that each is logged once.
    told: String,
}

// === impl StateReader ===

impl StateReader {
    /// Sets another file, or none.
    pub(crate) fn turn_to(&mut self, file: Option<PathBuf>) {
        *self = Self {
            file,
            known: std::mem::take(&mut self.known),
            ..Self::default()
        };
    }

    /// Path of the file, if there is one.
    pub(crate) fn state_path(&self) -> Option<&PathBuf> {
        self.file.as_ref()
    }

    /// True if there is a file that was not read yet.
    pub(crate) fn is_pending(&self) -> bool {
        let mut file = self.file.iter();
        file.any(|file| !self.known.contains(file))
    }

    /// Makes one attempt to read the file, after the pause. Logs each problem once. Cancel safe: a
    /// read that is under way continues and is picked up by the next call.
    pub(crate) async fn try_read(&mut self) -> LoadedState {
        let Some(file) = self.file.clone() else {
            return LoadedState::NoState;
        };
        if let Some(next) = self.next {
            sleep_until(next).await;
        }
        let ended = match self.reading.resume_wait(PATIENCE).await {
            Some(ended) => ended,
            None => {
                let file = file.clone();
                self.reading
                    .run_job(PATIENCE, move || read_state(&file))
                    .await
            }
        };
        let read = match ended {
            Ok(read) => read,
            Err(lane::Error::Broken(error)) => Err(io::Error::other(error)),
            Err(lane::Error::Late) => {
                return self.put_off(&file, format!("it could not be read within {PATIENCE:?}"));
            }
        };
        self.next = Some(Instant::now() + PAUSE);
        let path = file.display();
        let loaded = match read {
            Ok(Some(state)) => LoadedState::State(Box::new(state)),
            Ok(None) => LoadedState::NoState,
            Err(error) if is_garbage(&error) => {
                let problem = error.to_string();
                tracing::warn!(
                    %path,
                    problem,
                    "the state file is of no use: what it kept is found out anew"
                );
                LoadedState::NoState
            }
            Err(error) => return self.put_off(&file, error.to_string()),
        };
        if !self.told.is_empty() {
            tracing::info!(%path, "the state file can be read now");
        }
        self.known.insert(file);
        loaded
    }

    /// Logs a problem, and returns it.
    fn put_off(&mut self, file: &Path, problem: String) -> LoadedState {
        if self.told != problem {
            tracing::warn!(
                path = %file.display(),
                problem,
                "the state file cannot be read: nothing is kept until it can, or until it is removed"
            );
            self.told.clone_from(&problem);
        }
        LoadedState::Unread(problem)
    }
}

/// Reads the file; `None` if there is none in an existing folder.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if the file is malformed; any other error means that it may be
/// readable later.
pub(super) fn read_state(path: &Path) -> io::Result<Option<SavedState>> {
    let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    let text = small::read_bytes(path, MOST as u64).map_err(|error| match error {
        small::Error::Io(error) => error,
        // A folder or a FIFO at this path will never be readable.
        small::Error::NotAFile => invalid("it is not a file".to_owned()),
        _ => invalid(format!("it has more than {MOST} bytes")),
    });
    let text = match text {
        Err(error) if error.kind() == io::ErrorKind::NotFound && has_folder(path) => {
            return Ok(None);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = "its folder is not there";
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        text => text?,
    };
    SavedState::parse_state(&text).map(Some)
}

/// True if the file was read and is malformed.
pub(super) fn is_garbage(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
}

/// True if the folder of a file exists. If it does not, its disk may not be mounted yet.
fn has_folder(path: &Path) -> bool {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder.is_dir(),
        _ => true,
    }
}
