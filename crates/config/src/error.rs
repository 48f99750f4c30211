//! Why a config is not used.

use std::path::PathBuf;

use crate::{Problems, nvidia, source::SIZE_LIMIT};

/// Why a config is not used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("cannot read the config file")]
    Read(#[source] std::io::Error),
    /// It is not a plain file.
    #[error("{} is not a plain file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// It is far too large.
    #[error("{} has more than {SIZE_LIMIT} bytes, the most that a config file may have", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not a text.
    #[error("{} is not a text in UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// It says something wrong; everything that is wrong is there.
    #[error("{0}")]
    Invalid(Problems),
    /// The command line of NVIDIA's plugin is wrong.
    #[error(transparent)]
    Flags(#[from] nvidia::FlagError),
}

// === impl Error ===

impl Error {
    /// Everything that is wrong, place by place; empty where it could not be read at all.
    pub fn problems(&self) -> &[crate::Problem] {
        match self {
            Self::Invalid(problems) => &problems.0,
            _ => &[],
        }
    }
}
