//! What outlives the agent: one small file, replaced whole. A file that cannot be read, or makes
//! no sense, is reported and left out of account; it is not replaced before somebody could save it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use health::SavedFile;
use jiff::Timestamp;
use model::DeviceId;
use rustix::fs::{CWD, Mode, OFlags, openat};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{
    sync::watch,
    task::{JoinHandle, spawn_blocking},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{Rules, restore::is_blank};

/// The longest file that is read; ours are some kilobytes.
const MOST: u64 = 4 << 20;
/// How long reading may take: the disk may be away.
const PATIENCE: Duration = Duration::from_secs(3);
/// The same for writing.
const LIMIT: Duration = Duration::from_secs(5);
/// How long a file that could not be read is left as it is: the next agent may have more luck.
pub(super) const RESPITE: Duration = Duration::from_secs(60);
/// The least time between two writes.
const SPACING: Duration = Duration::from_millis(500);
/// The pause after a write that failed.
const PAUSE: Duration = Duration::from_secs(30);
/// Only root has to read it.
const MODE: u32 = 0o600;

/// What outlives the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    /// Verdicts and their history.
    pub(crate) health: SavedFile,
    /// What nobody may look at, and until when: `all`, or a card.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) released: BTreeMap<String, Timestamp>,
    /// The facts of devices that were not healthy: one that cannot be read stays listed. As JSON,
    /// so that what another version wrote costs no more than itself.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) facts: BTreeMap<DeviceId, Value>,
}

/// What became of reading the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Loaded {
    State(Box<State>),
    /// There is none, or it makes no sense.
    Nothing,
    /// It may hold something, but the disk did not give it.
    Unread,
}

/// Writes the file.
#[derive(Debug)]
struct Writer {
    /// How long a write may take before it is told.
    limit: Duration,
    /// A write that has not come to its end in time.
    late: Option<JoinHandle<io::Result<()>>>,
    /// The file that was looked at before it was replaced for the first time.
    checked: Option<PathBuf>,
}

// === impl State ===

impl State {
    /// Whether a start without it would be the same.
    pub(super) fn is_empty(&self) -> bool {
        self.released.is_empty()
            && self.health.history.is_empty()
            && self.health.devices.values().all(is_blank)
    }
}

// === impl Writer ===

impl Writer {
    fn new(limit: Duration) -> Self {
        Self {
            limit,
            late: None,
            checked: None,
        }
    }

    /// Replaces the file. A disk that hangs is an error, and nothing else is begun until it does
    /// not any more.
    async fn save(&mut self, path: PathBuf, state: Arc<State>) -> io::Result<()> {
        if let Some(late) = self.late.take() {
            let _ = self.await_end(late).await?;
        }
        let first = self.checked.as_ref() != Some(&path);
        let file = path.clone();
        let write = spawn_blocking(move || {
            if first {
                set_aside(&file);
            }
            let mut text = serde_json::to_vec(&*state)?;
            text.push(b'\n');
            host::atomic::write(&file, &text, MODE)
        });
        self.await_end(write).await??;
        self.checked = Some(path);
        Ok(())
    }

    /// What came of a write; an error if it takes too long.
    async fn await_end(
        &mut self,
        mut write: JoinHandle<io::Result<()>>,
    ) -> io::Result<io::Result<()>> {
        if let Ok(done) = timeout(self.limit, &mut write).await {
            return done.map_err(io::Error::other);
        }
        self.late = Some(write);
        let message = format!("the disk has not taken it within {:?}", self.limit);
        Err(io::Error::new(io::ErrorKind::TimedOut, message))
    }
}

/// Reads the file, if there is one; what is wrong with it is told.
pub(super) async fn load(path: PathBuf) -> Loaded {
    let shown = path.display().to_string();
    let reading = timeout(PATIENCE, spawn_blocking(move || read(&path)));
    let (problem, loaded) = match reading.await {
        Ok(Ok(Ok(None))) => return Loaded::Nothing,
        Ok(Ok(Ok(Some(state)))) => return Loaded::State(Box::new(state)),
        Ok(Ok(Err(error))) if is_garbage(&error) => (error.to_string(), Loaded::Nothing),
        Ok(Ok(Err(error))) => (error.to_string(), Loaded::Unread),
        Ok(Err(error)) => (error.to_string(), Loaded::Unread),
        Err(_) => {
            let problem = format!("it could not be read within {PATIENCE:?}");
            (problem, Loaded::Unread)
        }
    };
    tracing::warn!(
        path = shown,
        problem,
        "the state file is of no use: what it kept is found out anew"
    );
    loaded
}

fn read(path: &Path) -> io::Result<Option<State>> {
    // A FIFO would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => std::fs::File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    if !file.metadata()?.is_file() {
        return Err(invalid("it is not a file".to_owned()));
    }
    let mut text = Vec::new();
    file.take(MOST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MOST {
        return Err(invalid(format!("it has more than {MOST} bytes")));
    }
    let state = serde_json::from_slice(&text).map_err(|error| invalid(error.to_string()))?;
    Ok(Some(state))
}

/// Whether it was read and makes no sense.
fn is_garbage(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
}

/// Writes what is to be kept whenever it is another, until cancelled; the last of it in any case.
/// A disk that fails or hangs hinders nobody else.
pub(crate) async fn keep(
    mut kept: watch::Receiver<Option<Arc<State>>>,
    mut rules: watch::Receiver<Rules>,
    stop: CancellationToken,
) {
    let mut writer = Writer::new(LIMIT);
    let mut told = String::new();
    let mut pause = SPACING;
    let mut file = rules.borrow_and_update().health.state_file.clone();
    loop {
        let change = async {
            tokio::select! {
                changed = kept.changed() => changed.is_ok(),
                () = other_file(&mut rules, &file) => true,
                () = sleep(PAUSE), if pause == PAUSE => true,
            }
        };
        let ended = !stop.run_until_cancelled(change).await.unwrap_or(false);
        if ended && !kept.has_changed().unwrap_or(false) {
            return;
        }
        file = rules.borrow_and_update().health.state_file.clone();
        let state = kept.borrow_and_update().clone();
        if let (Some(path), Some(state)) = (&file, state) {
            let problem = writer.save(path.clone(), state).await.err();
            pause = if problem.is_some() { PAUSE } else { SPACING };
            let problem = problem.map(|error| error.to_string()).unwrap_or_default();
            if !problem.is_empty() && problem != told {
                let path = path.display();
                tracing::warn!(%path, problem, "verdicts are not kept over a restart");
            }
            told = problem;
        }
        if ended {
            return;
        }
        let _ = stop.run_until_cancelled(sleep(SPACING)).await;
    }
}

/// Waits until another file is to be used than this one.
async fn other_file(rules: &mut watch::Receiver<Rules>, file: &Option<PathBuf>) {
    let other = rules.wait_for(|rules| rules.health.state_file != *file);
    if other.await.is_err() {
        std::future::pending().await
    }
}

/// Renames a file that makes no sense, so that it can be looked at.
fn set_aside(path: &Path) {
    let garbage = read(path).is_err_and(|error| is_garbage(&error));
    if !garbage || !path.is_file() {
        return;
    }
    let mut bad = OsString::from(path);
    bad.push(".bad");
    match fs_err::rename(path, &bad) {
        Ok(()) => tracing::warn!(
            path = %path.display(), kept = %bad.display(),
            "the state file made no sense: it was set aside"
        ),
        Err(error) => tracing::warn!(%error, "a state file that made no sense is replaced"),
    }
}

#[cfg(test)]
mod tests;
