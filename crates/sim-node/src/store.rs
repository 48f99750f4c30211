//! The files of a node: where they are, and how `node.json` is read and replaced.
//!
//! Writers hold a lock file and replace the file whole, so that a reader sees the old state or
//! the new one and never a part.

use std::{
    io::{self, Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::FlockOperation;

use crate::state::{Event, State};

/// A larger `node.json` is not read.
const MAX_BYTES: u64 = 64 << 20;

/// The state.
pub const STATE: &str = "node.json";
/// The driver's events, one a line.
pub const EVENTS: &str = "events.jsonl";
/// The log of calls, written if it exists.
pub const CALLS: &str = "calls.log";
/// Who holds its lock may replace the state.
const LOCK: &str = "node.lock";
/// The driver library.
pub const LIBRARY: &str = "libnvidia-ml.so.1";
/// The library by which programs tell that they are below Windows.
pub const DXCORE: &str = "libdxcore.so";
/// The host's file tree.
pub const ROOT: &str = "root";

/// What tells one version of `node.json` from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    size: u64,
    seconds: i64,
    nanos: i64,
}

/// One version of the state. While its file is open no later version can have the same inode, so
/// that two versions never have the same stamp.
#[derive(Debug)]
pub struct Version {
    /// What tells it from the next.
    pub stamp: Stamp,
    /// The state.
    pub state: State,
    /// The file it was read from.
    pub file: fs_err::File,
}

/// A node whose files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written; the error names it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The state is no JSON of the right form.
    #[error("cannot understand {path}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// The state is well-formed and contradicts itself.
    #[error("cannot use {path}: {reason}")]
    Nonsense {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// The right to replace a node's state, until dropped.
#[derive(Debug)]
pub struct Lock {
    _file: fs_err::File,
}

// === impl Stamp ===

impl Stamp {
    /// The version that lies in the folder now.
    ///
    /// # Errors
    /// If there is none.
    pub fn of(dir: &Path) -> io::Result<Self> {
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

// === impl Lock ===

impl Lock {
    /// Waits until no other process changes the node, for as long as that takes.
    ///
    /// # Errors
    /// If the lock file cannot be made.
    pub fn take(dir: &Path) -> io::Result<Self> {
        let file = fs_err::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(dir.join(LOCK))?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(Self { _file: file })
    }
}

/// Reads the state.
///
/// # Errors
/// If there is none, or it is not sound.
pub fn load(dir: &Path) -> Result<State, Error> {
    read(dir).map(|version| version.state)
}

/// Reads the state and keeps its file open.
///
/// # Errors
/// If there is none, or it is not sound.
pub fn read(dir: &Path) -> Result<Version, Error> {
    let path = dir.join(STATE);
    let mut bytes = Vec::new();
    let file = fs_err::File::open(&path)?;
    let stamp = Stamp::new(&file.metadata()?);
    (&file).take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    let nonsense = |reason| Error::Nonsense {
        path: path.clone(),
        reason,
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(nonsense(format!("it is larger than {MAX_BYTES} bytes")));
    }
    let state: State = serde_json::from_slice(&bytes).map_err(|source| Error::Syntax {
        path: path.clone(),
        source,
    })?;
    state.check().map_err(nonsense)?;
    Ok(Version { stamp, state, file })
}

/// Replaces the state; the caller holds the lock.
///
/// # Errors
/// If it cannot be written; the old one stays.
pub fn save(dir: &Path, state: &State) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".node-").tempfile_in(dir)?;
    // At once: piece by piece it would be ten thousand system calls.
    file.write_all(&serde_json::to_vec_pretty(state)?)?;
    file.persist(dir.join(STATE)).map_err(|e| e.error)?;
    Ok(())
}

/// Adds one event, in a single write so that two writers do not mix their lines.
///
/// # Errors
/// If it cannot be written.
pub fn append(dir: &Path, event: &Event) -> io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    fs_err::OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join(EVENTS))?
        .write_all(&line)
}
