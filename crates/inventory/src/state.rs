//! The state file: one small file, replaced as a whole, and never before the old content was read.
//! `read` reads the file of an earlier agent, `write` writes it.

mod read;
mod write;

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc};

use health::SavedHealth;
use jiff::Timestamp;
use model::DeviceId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) use self::read::{LoadedState, StateReader};
pub use self::write::keep_state_file;

/// Size limit of the state file, in bytes. Real files have some kilobytes.
const MOST: usize = 4 << 20;
/// Version of the format that this build writes. An agent that knows only version 1 reads
/// everything except the releases.
const VERSION: u32 = 2;
/// The only backend that version 1 knew.
const FIRST_BACKEND: &str = "nvidia";

/// State that is saved over a restart of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedState {
    /// Version of the format of the file.
    #[serde(default = "first_version")]
    pub version: u32,
    /// Records of all devices and the history of verdicts.
    pub health: SavedHealth,
    /// Releases by backend: `all` or the address of a card, with the time at which the release
    /// ends.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub releases: BTreeMap<String, BTreeMap<String, Timestamp>>,
    /// Facts of devices that were not healthy, so that a device that cannot be read stays listed.
    /// Kept as JSON, so that facts of another version do not make the whole file unreadable.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<DeviceId, Value>,
}

/// Fields of version 1, which knew one backend, that have another form today.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StateV1 {
    released: BTreeMap<String, Timestamp>,
}

/// State that is to be written.
#[derive(Clone, Debug, Default)]
pub struct StateDraft {
    /// Sequence number of the draft.
    pub number: u64,
    /// Path and content. `None` if nothing is to be written.
    content: Option<(PathBuf, Arc<SavedState>)>,
}

/// Result of reading and writing the state file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateFileStatus {
    /// Path of the file; `None` if state is not saved (`health.stateFile` is off).
    pub file: Option<PathBuf>,
    /// Reason that the file could not be read or written; `None` if it could.
    pub problem: Option<String>,
    /// Number of the newest draft that was written or failed; `None` while the file was not read.
    tried: Option<u64>,
}

// === impl SavedState ===

impl Default for SavedState {
    fn default() -> Self {
        Self {
            version: VERSION,
            health: SavedHealth::default(),
            releases: BTreeMap::new(),
            facts: BTreeMap::new(),
        }
    }
}

impl SavedState {
    /// True if a start without this state would be the same.
    pub(super) fn is_empty(&self) -> bool {
        self.releases.is_empty()
            && self.health.history.is_empty()
            && self
                .health
                .devices
                .values()
                .all(health::SavedDevice::is_blank)
    }

    /// Drops facts of devices without a saved record: they are of no use.
    pub(super) fn drop_orphan_facts(&mut self) {
        let devices = &self.health.devices;
        self.facts.retain(|id, _| devices.contains_key(id));
    }

    /// Parses the text of a state file. Unknown fields are ignored.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if the text is longer than 4 MiB or malformed.
    pub fn parse_state(text: &[u8]) -> io::Result<Self> {
        let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
        if text.len() > MOST {
            return Err(invalid(format!("it has more than {MOST} bytes")));
        }
        let state: Self =
            serde_json::from_slice(text).map_err(|error| invalid(error.to_string()))?;
        // A newer version is read as far as it is known, so that cordons survive a rollback.
        if state.version >= VERSION {
            return Ok(state);
        }
        // Malformed releases of version 1 cost the releases only.
        let first: StateV1 = serde_json::from_slice(text).unwrap_or_default();
        Ok(state.upgrade(first))
    }

    /// Upgrades the fields that version 1 wrote in another form.
    fn upgrade(mut self, first: StateV1) -> Self {
        for saved in self.health.devices.values_mut() {
            if saved.backend.is_empty() {
                FIRST_BACKEND.clone_into(&mut saved.backend);
            }
        }
        let mut releases = self.releases;
        if !first.released.is_empty() {
            releases.insert(FIRST_BACKEND.to_owned(), first.released);
        }
        Self {
            version: VERSION,
            releases,
            ..self
        }
    }

    /// Returns the text of the file. It can always be parsed again. If the text would be too long,
    /// the least valuable records are dropped.
    ///
    /// # Errors
    /// If the text stays too long without them.
    pub fn to_file_text(&self) -> io::Result<Vec<u8>> {
        let mut text = serde_json::to_vec(self)?;
        let mut less = None;
        // One byte is left for the line feed.
        while text.len() >= MOST {
            let less = less.get_or_insert_with(|| self.clone());
            if !less.health.shrink() {
                return Err(io::Error::other(format!("it has more than {MOST} bytes")));
            }
            less.drop_orphan_facts();
            text = serde_json::to_vec(less)?;
        }
        text.push(b'\n');
        Ok(text)
    }
}

// === impl StateDraft ===

impl StateDraft {
    /// Returns the state to write; `None` while nothing is to be written.
    pub fn draft_state(&self) -> Option<&SavedState> {
        self.content.as_ref().map(|(_, state)| &**state)
    }

    /// Replaces the state, and counts up the number.
    pub(super) fn replace_state(&mut self, file: PathBuf, state: SavedState) {
        self.number += 1;
        self.content = Some((file, Arc::new(state)));
    }

    /// Drops the state: nothing is to be written.
    pub(super) fn drop_state(&mut self) {
        self.content = None;
    }
}

// === impl StateFileStatus ===

impl StateFileStatus {
    /// Returns the status of a file that has not been read yet, or of none.
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self {
            file,
            ..Self::default()
        }
    }

    /// Takes in the result of reading the file, at the draft with this number.
    pub(super) fn record_read(&mut self, problem: Option<String>, draft: u64) {
        self.tried = problem.is_none().then_some(draft);
        self.problem = problem;
    }

    /// Takes in the result of writing a draft. Ignored for a file that is not in use any more.
    fn wrote(&mut self, file: &PathBuf, draft: u64, problem: Option<String>) {
        if self.file.as_ref() == Some(file) && self.tried.is_some() {
            self.tried = Some(draft);
            self.problem = problem;
        }
    }

    /// Returns the reason that the present state would not survive a restart of the agent; `None`
    /// if it would.
    pub fn not_kept(&self) -> Option<String> {
        let Some(file) = &self.file else {
            return Some("health.stateFile is off".to_owned());
        };
        let problem = self.problem.as_ref()?;
        Some(format!("{}: {problem}", file.display()))
    }

    /// True if a draft was written, failed, or will not be written.
    pub fn is_settled(&self, draft: u64) -> bool {
        let tried = self.tried.map_or(self.problem.is_some(), |n| n >= draft);
        tried || self.file.is_none()
    }
}

/// Version of a file without a version.
fn first_version() -> u32 {
    1
}

#[cfg(test)]
mod tests;
