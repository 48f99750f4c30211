//! Writes the state file, on a thread of its own. A disk that fails or hangs delays nothing else.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use host::lane::{self, Lane};
use tokio::{sync::watch, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    SavedState, StateDraft, StateFileStatus,
    read::{is_garbage, read_state},
};
use crate::Published;

/// Time after which a write is reported as late.
const LIMIT: Duration = Duration::from_secs(5);
/// Time for the last write at shutdown, so that the agent ends in under two seconds.
const LAST: Duration = Duration::from_secs(1);
/// Least time between two writes.
const SPACING: Duration = Duration::from_millis(500);
/// Time until a failed write is tried again.
const PAUSE: Duration = Duration::from_secs(30);
/// Mode of the file. Reasons of operators and process names are for root alone.
const MODE: u32 = 0o600;

/// Writer of the state file.
#[derive(Debug)]
pub(super) struct StateWriter {
    /// Time after which a write is reported as late.
    pub(super) limit: Duration,
    /// One write at a time. A write that is late stays here until it ends.
    pub(super) writing: Lane<io::Result<()>>,
    /// The file whose old content was checked before the first write.
    checked: Option<PathBuf>,
}

// === impl StateWriter ===

impl StateWriter {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            writing: Lane::default(),
            checked: None,
        }
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if the disk does not answer in time. No other write starts
    /// before the late one ends.
    pub(super) async fn write_state(
        &mut self,
        path: PathBuf,
        state: Arc<SavedState>,
    ) -> io::Result<()> {
        if let Some(earlier) = self.writing.resume_wait(self.limit).await {
            // The result of a late write does not matter: a newer state follows.
            let _ = earlier.map_err(|error| self.io_error(error))?;
        }
        let first = self.checked.as_ref() != Some(&path);
        let file = path.clone();
        let write = move || {
            // Afterwards the content is from this agent.
            if first {
                set_aside(&file);
            }
            host::atomic::replace_file(&file, &state.to_file_text()?, MODE)
        };
        let written = self.writing.run_job(self.limit, write).await;
        written.map_err(|error| self.io_error(error))??;
        self.checked = Some(path);
        Ok(())
    }

    fn io_error(&self, error: lane::Error) -> io::Error {
        match error {
            lane::Error::Broken(error) => io::Error::other(error),
            lane::Error::Late => {
                let message = format!("the disk has not taken it within {:?}", self.limit);
                io::Error::new(io::ErrorKind::TimedOut, message)
            }
        }
    }
}

/// Writes each new draft until cancelled, and the last one afterwards, if the disk answers within a
/// second.
pub async fn keep_state_file(published: Published, stop: CancellationToken) {
    let drafts = published.drafts.subscribe();
    keep_with(StateWriter::new(LIMIT), drafts, published.keeping, stop).await;
}

/// The same with a given writer, for tests.
pub(super) async fn keep_with(
    writer: StateWriter,
    drafts: watch::Receiver<StateDraft>,
    keeping: watch::Sender<StateFileStatus>,
    stop: CancellationToken,
) {
    tokio::select! {
        () = write_drafts(writer, drafts, keeping, &stop) => {}
        () = async { stop.cancelled().await; sleep(LAST).await } => {
            tracing::warn!("the disk does not take the state file: what changed last is not kept");
        }
    }
}

/// Writes drafts one after another. Returns when cancelled and the newest draft was tried.
async fn write_drafts(
    mut writer: StateWriter,
    mut drafts: watch::Receiver<StateDraft>,
    keeping: watch::Sender<StateFileStatus>,
    stop: &CancellationToken,
) {
    let mut told = String::new();
    loop {
        let failed = !told.is_empty();
        let change = async {
            tokio::select! {
                changed = drafts.changed() => changed.is_ok(),
                // A disk that is full or missing gives no signal when it is usable again.
                () = sleep(PAUSE), if failed => true,
            }
        };
        let ended = !stop.run_until_cancelled(change).await.unwrap_or(false);
        // The last draft can arrive together with the cancellation.
        if ended && !drafts.has_changed().unwrap_or(false) {
            return;
        }
        let StateDraft { number, content } = drafts.borrow_and_update().clone();
        if let Some((file, state)) = content {
            let problem = writer.write_state(file.clone(), state).await.err();
            let problem = problem.map(|error| error.to_string());
            keeping.send_modify(|keeping| keeping.wrote(&file, number, problem.clone()));
            let problem = problem.unwrap_or_default();
            if !problem.is_empty() && problem != told {
                let path = file.display();
                tracing::warn!(%path, problem, "verdicts are not kept over a restart");
            }
            told = problem;
        }
        if ended {
            return;
        }
        // A card that flaps must not write to the disk all the time.
        let _ = stop.run_until_cancelled(sleep(SPACING)).await;
    }
}

/// Renames a malformed file to `*.bad`, so that it can be examined.
fn set_aside(path: &Path) {
    let garbage = read_state(path).is_err_and(|error| is_garbage(&error));
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
