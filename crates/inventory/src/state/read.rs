//! Reads the file that an earlier agent left, again and again until the disk gives it.

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

use super::{MOST, State};

/// How long a try may take before it is told: the disk may be away.
const PATIENCE: Duration = Duration::from_secs(3);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_secs(2);

/// What became of a try.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Loaded {
    State(Box<State>),
    /// There is none, or it makes no sense.
    Nothing,
    /// It may hold something, but the disk does not give it, for that reason.
    Unread(String),
}

/// Who reads a file until it was read.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    file: Option<PathBuf>,
    /// The files that were read: what is in them since is of this agent.
    known: BTreeSet<PathBuf>,
    /// A try that has not come to its end. There is one at a time.
    reading: Lane<io::Result<Option<State>>>,
    /// When the next one may begin.
    next: Option<Instant>,
    /// What was told last.
    told: String,
}

// === impl Reader ===

impl Reader {
    /// Has another file read, or none.
    pub(crate) fn turn_to(&mut self, file: Option<PathBuf>) {
        *self = Self {
            file,
            known: std::mem::take(&mut self.known),
            ..Self::default()
        };
    }

    /// The file.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        self.file.as_ref()
    }

    /// Whether the file was not read yet.
    pub(crate) fn is_pending(&self) -> bool {
        let mut file = self.file.iter();
        file.any(|file| !self.known.contains(file))
    }

    /// Tries to read the file; what hinders is told, once. One may cease to wait and try again.
    pub(crate) async fn attempt(&mut self) -> Loaded {
        let Some(file) = self.file.clone() else {
            return Loaded::Nothing;
        };
        if let Some(next) = self.next {
            sleep_until(next).await;
        }
        let ended = match self.reading.resume(PATIENCE).await {
            Some(ended) => ended,
            None => {
                let file = file.clone();
                self.reading.run(PATIENCE, move || read(&file)).await
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
            Ok(Some(state)) => Loaded::State(Box::new(state)),
            Ok(None) => Loaded::Nothing,
            Err(error) if is_garbage(&error) => {
                let problem = error.to_string();
                tracing::warn!(
                    %path,
                    problem,
                    "the state file is of no use: what it kept is found out anew"
                );
                Loaded::Nothing
            }
            Err(error) => return self.put_off(&file, error.to_string()),
        };
        if !self.told.is_empty() {
            tracing::info!(%path, "the state file can be read now");
        }
        self.known.insert(file);
        loaded
    }

    fn put_off(&mut self, file: &Path, problem: String) -> Loaded {
        if self.told != problem {
            tracing::warn!(
                path = %file.display(),
                problem,
                "the state file cannot be read: nothing is kept until it can, or until it is removed"
            );
            self.told.clone_from(&problem);
        }
        Loaded::Unread(problem)
    }
}

/// Reads the file, if there is one.
pub(super) fn read(path: &Path) -> io::Result<Option<State>> {
    let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    let text = small::read_bytes(path, MOST as u64).map_err(|error| match error {
        small::Error::Io(error) => error,
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
    State::parse(&text).map(Some)
}

/// Whether it was read and makes no sense.
pub(super) fn is_garbage(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
}

/// Whether the folder of a file is there: if not, its disk may be away.
fn has_folder(path: &Path) -> bool {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder.is_dir(),
        _ => true,
    }
}
