//! The command line and the variables of `nvidia-device-plugin`, as urfave/cli v2 and Go's `flag`
//! read them. A pure function of arguments and environment.

mod parse;
mod table;

use std::collections::BTreeMap;

pub(super) use self::table::{FLAGS, Kind, Spec, spec};
use crate::{Origin, Problem, Severity};

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// To run.
    Run(Flags),
    /// To show [`help`](crate::nvidia::help()).
    Help,
    /// To show the version.
    Version,
}

/// What flags and variables say. What they do not say is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub(super) given: BTreeMap<&'static str, Given>,
    /// The XIDs of `DP_DISABLE_HEALTHCHECKS`.
    pub(super) disable_xids: Option<String>,
    /// The XIDs of `DP_ENABLE_HEALTHCHECKS`.
    pub(super) enable_xids: Option<String>,
    /// What is probably not meant so.
    pub warnings: Vec<Problem>,
}

/// A value and who said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// The value of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Bool(bool),
    Texts(Vec<String>),
    Ints(Vec<i64>),
}

/// Why a command line cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// There is no such flag.
    #[error("flag {flag} is not known; {help}")]
    Unknown {
        /// As it was typed.
        flag: String,
        /// What may be meant.
        help: String,
    },
    /// It is not written as flags are.
    #[error("`{text}` is not a flag; write --name, --name=value or --name value")]
    Syntax {
        /// As it was typed.
        text: String,
    },
    /// Its value is missing.
    #[error("flag {flag} needs a value: write {flag}=VALUE")]
    NoValue {
        /// As it was typed.
        flag: String,
    },
    /// Its value is not of its kind.
    #[error("{origin}: `{value}` is not {expected}")]
    BadValue {
        /// The flag or variable.
        origin: Origin,
        /// The value.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// Two names of one flag are both there.
    #[error("flags --{first} and --{second} are one and the same; give one of them")]
    TwoForms {
        /// One.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
}

// === impl Flags ===

impl Flags {
    /// Reads a command line without its first word, and the environment.
    pub fn parse<S: AsRef<str>>(
        args: &[S],
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Call, FlagError> {
        parse::parse(args, env)
    }

    /// The config file, if one is named.
    pub fn config_file(&self) -> Option<&str> {
        match self.value("config-file") {
            Some(Value::Text(path)) if !path.is_empty() => Some(path),
            _ => None,
        }
    }

    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.given.get(name).map(|given| &given.value)
    }

    fn warn(&mut self, origin: Origin, message: String, help: &str) {
        self.warnings.push(Problem {
            severity: Severity::Warning,
            at: origin,
            key: String::new(),
            message,
            help: help.to_owned(),
            snippet: None,
        });
    }
}

#[cfg(test)]
mod tests;
