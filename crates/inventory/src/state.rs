//! What outlives the agent: one small file, replaced whole, and never before what was in it is
//! known. `read` has what an earlier agent left, `write` keeps the file.

mod read;
mod write;

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc};

use health::SavedFile;
use jiff::Timestamp;
use model::DeviceId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) use self::read::{Loaded, Reader};
pub use self::write::keep;

/// The longest file that is read and written; ours are some kilobytes.
const MOST: usize = 4 << 20;
/// The version that this build writes. A reader of version 1 takes over everything but the releases.
const VERSION: u32 = 2;
/// The one backend of version 1.
const FIRST_BACKEND: &str = "nvidia";

/// What outlives the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The version of the format in which it was written.
    #[serde(default = "first_version")]
    pub version: u32,
    /// Verdicts and their history.
    pub health: SavedFile,
    /// Cards that nobody may look at, and until when: of each backend `all`, or single ones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub releases: BTreeMap<String, BTreeMap<String, Timestamp>>,
    /// The facts of devices that were not healthy: one that cannot be read stays listed. As JSON,
    /// so that what another version wrote costs no more than itself.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<DeviceId, Value>,
}

/// The part that version 1 wrote in another way, when there was one backend.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FirstState {
    released: BTreeMap<String, Timestamp>,
}

/// What is to be written.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The how-manieth it is.
    pub number: u64,
    /// The file, and what is to be in it.
    content: Option<(PathBuf, Arc<State>)>,
}

/// How it goes with the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keeping {
    /// The file; none if nothing is kept.
    pub file: Option<PathBuf>,
    /// Why it could not be read, or not be written.
    pub problem: Option<String>,
    /// The newest draft that somebody tried to write; none while the file was not read.
    tried: Option<u64>,
}

// === impl State ===

impl Default for State {
    fn default() -> Self {
        Self {
            version: VERSION,
            health: SavedFile::default(),
            releases: BTreeMap::new(),
            facts: BTreeMap::new(),
        }
    }
}

impl State {
    /// Whether a start without it would be the same.
    pub(super) fn is_empty(&self) -> bool {
        self.releases.is_empty()
            && self.health.history.is_empty()
            && self.health.devices.values().all(health::Saved::is_blank)
    }

    /// Leaves the facts of devices of which something is kept: without that they are of no use.
    pub(super) fn tidy(&mut self) {
        let devices = &self.health.devices;
        self.facts.retain(|id, _| devices.contains_key(id));
    }

    /// Reads the text of a state file. Fields that are not known are left out.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if the text is longer than a state file may be, or makes no
    /// sense.
    pub fn parse(text: &[u8]) -> io::Result<Self> {
        let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
        if text.len() > MOST {
            return Err(invalid(format!("it has more than {MOST} bytes")));
        }
        let state: Self =
            serde_json::from_slice(text).map_err(|error| invalid(error.to_string()))?;
        if state.version >= VERSION {
            return Ok(state);
        }
        let first: FirstState = serde_json::from_slice(text).unwrap_or_default();
        Ok(state.upgrade(first))
    }

    /// Takes over what version 1 wrote in another way.
    fn upgrade(mut self, first: FirstState) -> Self {
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

    /// The text of the file: always one that [`State::parse`] reads. What is least worth is left
    /// out if the text would be too long.
    ///
    /// # Errors
    /// If what cannot be left out is too long by itself.
    pub fn text(&self) -> io::Result<Vec<u8>> {
        let mut text = serde_json::to_vec(self)?;
        let mut less = None;
        while text.len() >= MOST {
            let less = less.get_or_insert_with(|| self.clone());
            if !less.health.shrink() {
                return Err(io::Error::other(format!("it has more than {MOST} bytes")));
            }
            less.tidy();
            text = serde_json::to_vec(less)?;
        }
        text.push(b'\n');
        Ok(text)
    }
}

// === impl Draft ===

impl Draft {
    /// The state that is to be in the file; none while nothing is to be written.
    pub fn state(&self) -> Option<&State> {
        self.content.as_ref().map(|(_, state)| &**state)
    }

    /// Another state for a file.
    pub(super) fn set(&mut self, file: PathBuf, state: State) {
        self.number += 1;
        self.content = Some((file, Arc::new(state)));
    }

    /// Nothing more is to be written.
    pub(super) fn clear(&mut self) {
        self.content = None;
    }
}

// === impl Keeping ===

impl Keeping {
    /// A file that has not been read yet, or none.
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self {
            file,
            ..Self::default()
        }
    }

    /// What came of reading the file, at that draft.
    pub(super) fn read(&mut self, problem: Option<String>, draft: u64) {
        self.tried = problem.is_none().then_some(draft);
        self.problem = problem;
    }

    /// What came of writing a draft.
    fn wrote(&mut self, file: &PathBuf, draft: u64, problem: Option<String>) {
        if self.file.as_ref() == Some(file) && self.tried.is_some() {
            self.tried = Some(draft);
            self.problem = problem;
        }
    }

    /// Why what is told now does not outlive the agent, if it does not.
    pub fn not_kept(&self) -> Option<String> {
        let Some(file) = &self.file else {
            return Some("health.stateFile is off".to_owned());
        };
        let problem = self.problem.as_ref()?;
        Some(format!("{}: {problem}", file.display()))
    }

    /// Whether it is decided what becomes of a draft.
    pub fn is_settled(&self, draft: u64) -> bool {
        let tried = self.tried.map_or(self.problem.is_some(), |n| n >= draft);
        tried || self.file.is_none()
    }
}

/// The version of a file that does not say it.
fn first_version() -> u32 {
    1
}

#[cfg(test)]
mod tests;
