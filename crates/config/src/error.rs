//! Reasons why a config cannot be used.

use std::path::PathBuf;

use crate::{ConfigProblems, nvidia, source::SIZE_LIMIT};

/// Reason why a config cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened or read. The source names its path.
    #[error("cannot read the config file")]
    Read(#[source] std::io::Error),
    /// The path leads to a folder, a device, a FIFO or a socket.
    #[error("{} is not a plain file", path.display())]
    NotAFile {
        /// Path as it was given.
        path: PathBuf,
    },
    /// The file is longer than 1 MiB.
    #[error("{} has more than {SIZE_LIMIT} bytes, the most that a config file may have", path.display())]
    TooLarge {
        /// Path as it was given.
        path: PathBuf,
    },
    /// The file is not valid UTF-8.
    #[error("{} is not a text in UTF-8", path.display())]
    NotText {
        /// Path as it was given.
        path: PathBuf,
    },
    /// At least one value is wrong. Has every error and every warning, in the order of the file.
    #[error("{0}")]
    Invalid(ConfigProblems),
    /// A flag or variable of NVIDIA's device plugin is wrong.
    #[error(transparent)]
    Flags(#[from] nvidia::FlagError),
}

// === impl Error ===

impl Error {
    /// Returns every problem with its place. Empty unless the error is [`Error::Invalid`].
    pub fn problems(&self) -> &[crate::ConfigProblem] {
        match self {
            Self::Invalid(problems) => &problems.0,
            _ => &[],
        }
    }
}
