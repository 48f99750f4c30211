//! Writes the file. A disk that fails or hangs hinders nobody else.

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
    Draft, Keeping, State,
    read::{is_garbage, read},
};
use crate::Published;

/// How long a write may take before it is told.
const LIMIT: Duration = Duration::from_secs(5);
/// How long the last one may take: the agent ends in under two seconds.
const LAST: Duration = Duration::from_secs(1);
/// The least time between two writes.
const SPACING: Duration = Duration::from_millis(500);
/// The pause after a write that failed.
const PAUSE: Duration = Duration::from_secs(30);
/// Only root has to read it.
const MODE: u32 = 0o600;

/// Writes the file.
#[derive(Debug)]
pub(super) struct Writer {
    /// How long a write may take before it is told.
    pub(super) limit: Duration,
    /// One write at a time, also one that has not come to its end in time.
    pub(super) writing: Lane<io::Result<()>>,
    /// The file that was looked at before it was replaced for the first time.
    checked: Option<PathBuf>,
}

// === impl Writer ===

impl Writer {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            writing: Lane::default(),
            checked: None,
        }
    }

    /// Replaces the file. A disk that hangs is an error, and nothing else is begun until it does
    /// not any more.
    pub(super) async fn save(&mut self, path: PathBuf, state: Arc<State>) -> io::Result<()> {
        if let Some(earlier) = self.writing.resume(self.limit).await {
            // It wrote something older: what came of that is of no interest.
            let _ = earlier.map_err(|error| self.failure(error))?;
        }
        let first = self.checked.as_ref() != Some(&path);
        let file = path.clone();
        let write = move || {
            if first {
                set_aside(&file);
            }
            host::atomic::write(&file, &state.text()?, MODE)
        };
        let written = self.writing.run(self.limit, write).await;
        written.map_err(|error| self.failure(error))??;
        self.checked = Some(path);
        Ok(())
    }

    fn failure(&self, error: lane::Error) -> io::Error {
        match error {
            lane::Error::Broken(error) => io::Error::other(error),
            lane::Error::Late => {
                let message = format!("the disk has not taken it within {:?}", self.limit);
                io::Error::new(io::ErrorKind::TimedOut, message)
            }
        }
    }
}

/// Writes what is to be kept whenever it is another, until cancelled; the last of it in any case,
/// if the disk takes it.
pub async fn keep(published: Published, stop: CancellationToken) {
    let drafts = published.drafts.subscribe();
    keep_with(Writer::new(LIMIT), drafts, published.keeping, stop).await;
}

/// Does so with a writer.
pub(super) async fn keep_with(
    writer: Writer,
    drafts: watch::Receiver<Draft>,
    keeping: watch::Sender<Keeping>,
    stop: CancellationToken,
) {
    tokio::select! {
        () = follow(writer, drafts, keeping, &stop) => {}
        () = async { stop.cancelled().await; sleep(LAST).await } => {
            tracing::warn!("the disk does not take the state file: what changed last is not kept");
        }
    }
}

async fn follow(
    mut writer: Writer,
    mut drafts: watch::Receiver<Draft>,
    keeping: watch::Sender<Keeping>,
    stop: &CancellationToken,
) {
    let mut told = String::new();
    loop {
        let failed = !told.is_empty();
        let change = async {
            tokio::select! {
                changed = drafts.changed() => changed.is_ok(),
                () = sleep(PAUSE), if failed => true,
            }
        };
        let ended = !stop.run_until_cancelled(change).await.unwrap_or(false);
        if ended && !drafts.has_changed().unwrap_or(false) {
            return;
        }
        let Draft { number, content } = drafts.borrow_and_update().clone();
        if let Some((file, state)) = content {
            let problem = writer.save(file.clone(), state).await.err();
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
        let _ = stop.run_until_cancelled(sleep(SPACING)).await;
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
