//! Problems of a config: the place, the message and the remedy.

use std::{fmt, path::PathBuf};

use serde::Serialize;

/// Longest part of a line that is shown, in characters.
const LINE_LIMIT: usize = 100;

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "source", rename_all = "lowercase")]
pub enum ValueOrigin {
    /// No file, flag or variable sets the value.
    Default,
    /// A flag.
    Flag {
        /// Name with its dashes, as it was typed.
        name: String,
    },
    /// An environment variable.
    Variable {
        /// Name of the variable.
        name: String,
    },
    /// A config file.
    File {
        /// Path of the file, as it was given.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1, in characters.
        column: usize,
    },
}

/// Severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProblemSeverity {
    /// The config cannot be used.
    Error,
    /// The config can be used, but has a probable mistake.
    Warning,
}

/// One error or warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigProblem {
    /// Error or warning.
    pub severity: ProblemSeverity,
    /// Place in the file, or the flag or variable. [`ValueOrigin::Default`] if none of them is known.
    pub at: ValueOrigin,
    /// Key, e.g. `pools[0].sharing.replicas`. Empty for the file as a whole and for a flag.
    pub key: String,
    /// Description of the problem, without a full stop.
    pub message: String,
    /// Remedy. Can be empty.
    pub help: String,
    /// Line of the file, for a place in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<Snippet>,
}

/// Line of a text with one place marked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// Line, cut around the place to 100 characters. A control character is shown as a space.
    pub line: String,
    /// Beginning of the place in `line`, in characters, from 0.
    pub start: usize,
    /// Length of the place in characters, at least 1.
    pub width: usize,
}

/// All problems of a config, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblems(pub Vec<ConfigProblem>);

// === impl ValueOrigin ===

impl ValueOrigin {
    /// Makes the origin of a flag from its name without dashes.
    pub fn of_flag(name: &str) -> Self {
        let name = format!("--{name}");
        Self::Flag { name }
    }

    /// Makes the origin of a variable from its name.
    pub fn of_variable(name: impl Into<String>) -> Self {
        Self::Variable { name: name.into() }
    }
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Flag { name } => write!(f, "flag {name}"),
            Self::Variable { name } => write!(f, "variable {name}"),
            Self::File { path, line, .. } => write!(f, "{}:{line}", path.display()),
        }
    }
}

// === impl ConfigProblem ===

impl ConfigProblem {
    /// Returns true if the config cannot be used.
    pub fn is_error(&self) -> bool {
        self.severity == ProblemSeverity::Error
    }

    /// Returns line and column, by which problems are sorted. Flags and variables come first.
    pub(crate) fn sort_key(&self) -> (usize, usize) {
        match self.at {
            ValueOrigin::File { line, column, .. } => (line, column),
            _ => (0, 0),
        }
    }
}

impl fmt::Display for ConfigProblem {
    /// Writes `file:line:column: key: message`, then the line with the place marked, then the
    /// remedy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            ValueOrigin::Default => {}
            ValueOrigin::File { path, line, column } => {
                write!(f, "{}:{line}:{column}: ", path.display())?;
            }
            other => write!(f, "{other}: ")?,
        }
        if self.severity == ProblemSeverity::Warning {
            f.write_str("warning: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        if let (Some(snippet), ValueOrigin::File { line, .. }) = (&self.snippet, &self.at) {
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

// === impl ConfigProblems ===

impl fmt::Display for ConfigProblems {
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
    /// Cuts out the part of a line around a place. Columns count from 1, in characters.
    pub(crate) fn new(line: &str, column: usize, width: usize) -> Self {
        // A tab would move the mark, and an escape sequence would control the operator's terminal.
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
