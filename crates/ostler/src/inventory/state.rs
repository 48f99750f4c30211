//! What outlives the agent: one small file, replaced whole. A file that cannot be read, or makes
//! no sense, is reported and left out of account.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use health::SavedFile;
use jiff::Timestamp;
use model::DeviceId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{Rules, restore::is_blank};

/// The longest file that is read; ours are some kilobytes.
const MOST: u64 = 4 << 20;
/// How long reading may take: the disk may be away.
const PATIENCE: Duration = Duration::from_secs(3);
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

// === impl State ===

impl State {
    /// Whether a start without it would be the same.
    pub(super) fn is_empty(&self) -> bool {
        self.released.is_empty()
            && self.health.history.is_empty()
            && self.health.devices.values().all(is_blank)
    }
}

/// Reads the file, if there is one; what is wrong with it is told.
pub(super) async fn load(path: PathBuf) -> Option<State> {
    let shown = path.display().to_string();
    let reading = timeout(PATIENCE, spawn_blocking(move || read(&path)));
    let problem = match reading.await {
        Ok(Ok(Ok(state))) => return state,
        Ok(Ok(Err(error))) => error.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it could not be read within {PATIENCE:?}"),
    };
    tracing::warn!(
        path = shown,
        problem,
        "the state file is of no use: what it kept is found out anew"
    );
    None
}

fn read(path: &Path) -> io::Result<Option<State>> {
    let file = match fs_err::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
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

/// Writes what is to be kept whenever it is another, until cancelled; the last of it in any case.
/// A disk that fails or hangs hinders nobody else.
pub(crate) async fn keep(
    mut kept: watch::Receiver<Option<Arc<State>>>,
    mut rules: watch::Receiver<Rules>,
    stop: CancellationToken,
) {
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
            let problem = save(path.clone(), state).await.err();
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

async fn save(path: PathBuf, state: Arc<State>) -> io::Result<()> {
    let write = spawn_blocking(move || {
        let mut text = serde_json::to_vec(&*state)?;
        text.push(b'\n');
        host::atomic::write(&path, &text, MODE)
    });
    write.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests;
