//! What is wrong with a config, where exactly, and what to do about it.

use std::{fmt, path::PathBuf};

use serde::Serialize;

/// The most of a line that is shown.
const LINE_LIMIT: usize = 100;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "source", rename_all = "lowercase")]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// A flag, as it was typed.
    Flag {
        /// Its name, with its dashes.
        name: String,
    },
    /// An environment variable.
    Variable {
        /// Its name.
        name: String,
    },
    /// A config file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1, in characters.
        column: usize,
    },
}

/// Whether the config can be used all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can; but something is probably not meant so.
    Warning,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Whether the config can be used all the same.
    pub severity: Severity,
    /// Where.
    pub at: Origin,
    /// The key, e.g. `pools[0].sharing.replicas`; empty where it is the file as a whole.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
    /// The line in question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<Snippet>,
}

/// A line of a text with one place in it marked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// The line, shortened around the place where it is long.
    pub line: String,
    /// Where the place begins in `line`, from 0.
    pub start: usize,
    /// How many characters it has.
    pub width: usize,
}

/// Everything that is wrong, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

// === impl Origin ===

impl Origin {
    /// A flag by its name without dashes.
    pub fn flag(name: &str) -> Self {
        let name = format!("--{name}");
        Self::Flag { name }
    }

    /// A variable by its name.
    pub fn variable(name: impl Into<String>) -> Self {
        Self::Variable { name: name.into() }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Flag { name } => write!(f, "flag {name}"),
            Self::Variable { name } => write!(f, "variable {name}"),
            Self::File { path, line, .. } => write!(f, "{}:{line}", path.display()),
        }
    }
}

// === impl Problem ===

impl Problem {
    /// Whether the config cannot be used.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Line and column, for putting them in order.
    pub(crate) fn position(&self) -> (usize, usize) {
        match self.at {
            Origin::File { line, column, .. } => (line, column),
            _ => (0, 0),
        }
    }
}

impl fmt::Display for Problem {
    /// `file:line:column: key: message`, the line with the place marked, and the remedy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Origin::Default => {}
            Origin::File { path, line, column } => {
                write!(f, "{}:{line}:{column}: ", path.display())?;
            }
            other => write!(f, "{other}: ")?,
        }
        if self.severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        if let (Some(snippet), Origin::File { line, .. }) = (&self.snippet, &self.at) {
            let number = line.to_string();
            let (margin, indent) = (" ".repeat(number.len()), " ".repeat(snippet.start));
            let mark = "^".repeat(snippet.width);
            write!(f, "\n {number} | {}", snippet.line)?;
            write!(f, "\n {margin} | {indent}{mark}")?;
        }
        match self.help.is_empty() {
            true => Ok(()),
            false => write!(f, "\n   help: {}", self.help),
        }
    }
}

// === impl Problems ===

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.0.iter().enumerate() {
            let gap = if n == 0 { "" } else { "\n" };
            write!(f, "{gap}{problem}")?;
        }
        Ok(())
    }
}

// === impl Snippet ===

impl Snippet {
    /// The part of a line around a place. Columns count from 1, in characters.
    pub(crate) fn new(line: &str, column: usize, width: usize) -> Self {
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        let chars: Vec<char> = line.chars().map(shown).collect();
        let start = column.saturating_sub(1).min(chars.len());
        let skip = if start > LINE_LIMIT / 2 && chars.len() > LINE_LIMIT {
            start - LINE_LIMIT / 2
        } else {
            0
        };
        let line: String = chars.iter().skip(skip).take(LINE_LIMIT).collect();
        let start = start - skip;
        let room = line.chars().count().saturating_sub(start);
        Self {
            line: line.trim_end().to_owned(),
            start,
            width: width.min(room).max(1),
        }
    }
}
