//! Files of a node: their names, and reading and replacing `node.json`.
//!
//! Writers hold a lock file and replace the state file atomically. A reader sees the old state or
//! the new one, never a part.

use std::{
    io::{self, Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::FlockOperation;

use crate::state::{NodeEvent, NodeState};

/// Largest `node.json` that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// File of the state.
pub const STATE: &str = "node.json";
/// File of the driver's events, one per line.
pub const EVENTS: &str = "events.jsonl";
/// Log of NVML calls; written only if the file exists.
pub const CALLS: &str = "calls.log";
/// Lock file; its holder may replace the state.
const LOCK: &str = "node.lock";
/// Driver library.
pub const LIBRARY: &str = "libnvidia-ml.so.1";
/// Library by which programs detect WSL.
pub const DXCORE: &str = "libdxcore.so";
/// Folder of the host's files.
pub const ROOT: &str = "root";

/// Identity of one version of `node.json`, to detect changes without reading the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateStamp {
    inode: u64,
    size: u64,
    seconds: i64,
    nanos: i64,
}

/// One version of the state. As long as its file is open, the kernel cannot reuse the inode for a
/// later version, so no two versions have the same stamp.
#[derive(Debug)]
pub struct StateVersion {
    /// Identity of this version.
    pub stamp: StateStamp,
    /// State in this version.
    pub state: NodeState,
    /// Open file that the state was read from.
    pub file: fs_err::File,
}

/// Reason why a node's files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written; the error names it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The state file is not JSON of the right form.
    #[error("cannot understand {path}")]
    Syntax {
        /// State file.
        path: PathBuf,
        /// Position and cause.
        #[source]
        source: serde_json::Error,
    },
    /// The state is well-formed but contradicts itself.
    #[error("cannot use {path}: {reason}")]
    Nonsense {
        /// State file.
        path: PathBuf,
        /// Description of the contradiction.
        reason: String,
    },
}

/// Exclusive right to replace a node's state. Released on drop.
#[derive(Debug)]
pub struct StoreLock {
    _file: fs_err::File,
}

// === impl StateStamp ===

impl StateStamp {
    /// Stamp of the current version in the folder.
    ///
    /// # Errors
    /// If the folder has no state file.
    pub fn of_folder(dir: &Path) -> io::Result<Self> {
        Ok(Self::new(&fs_err::metadata(dir.join(STATE))?))
    }

    fn new(meta: &std::fs::Metadata) -> Self {
        Self {
            inode: meta.ino(),
            size: meta.size(),
            seconds: meta.mtime(),
            nanos: meta.mtime_nsec(),
        }
    }
}

// === impl StoreLock ===

impl StoreLock {
    /// Takes the lock. Waits without a limit while another process changes the node.
    ///
    /// # Errors
    /// If the lock file cannot be created.
    pub fn take_lock(dir: &Path) -> io::Result<Self> {
        let file = fs_err::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(dir.join(LOCK))?;
        // `flock` locks end with their process, so a killed command leaves no stale lock.
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(Self { _file: file })
    }
}

/// Reads the state.
///
/// # Errors
/// If there is no state file, or it is not valid.
pub fn load_state(dir: &Path) -> Result<NodeState, Error> {
    read_version(dir).map(|version| version.state)
}

/// Reads the state and keeps its file open.
///
/// # Errors
/// If there is no state file, or it is not valid.
pub fn read_version(dir: &Path) -> Result<StateVersion, Error> {
    let path = dir.join(STATE);
    let mut bytes = Vec::new();
    let file = fs_err::File::open(&path)?;
    let stamp = StateStamp::new(&file.metadata()?);
    // The stamp is taken from the open file: the path may be replaced at any time.
    (&file).take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    let nonsense = |reason| Error::Nonsense {
        path: path.clone(),
        reason,
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(nonsense(format!("it is larger than {MAX_BYTES} bytes")));
    }
    let state: NodeState = serde_json::from_slice(&bytes).map_err(|source| Error::Syntax {
        path: path.clone(),
        source,
    })?;
    state.check_state().map_err(nonsense)?;
    Ok(StateVersion { stamp, state, file })
}

/// Replaces the state. The caller must hold the [`StoreLock`].
///
/// # Errors
/// If the state cannot be written; the old state stays.
pub fn save_state(dir: &Path, state: &NodeState) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".node-").tempfile_in(dir)?;
    // Written at once: a serialiser on the file would make ten thousand system calls.
    file.write_all(&serde_json::to_vec_pretty(state)?)?;
    file.persist(dir.join(STATE)).map_err(|e| e.error)?;
    Ok(())
}

/// Appends one event with a single write, so that the lines of two writers do not mix.
///
/// # Errors
/// If the event cannot be written.
pub fn append(dir: &Path, event: &NodeEvent) -> io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    fs_err::OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join(EVENTS))?
        .write_all(&line)
}
