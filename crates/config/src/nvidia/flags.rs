//! Command line and variables of `nvidia-device-plugin`, read as urfave/cli v2 and Go's `flag` read
//! them. A pure function of arguments and environment.

mod parse;
mod table;

use std::collections::BTreeMap;

pub(super) use self::table::{FLAGS, FlagKind, FlagSpec, find_spec};
use crate::{ConfigProblem, ProblemSeverity, ValueOrigin};

/// Request of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Run the plugin with these flags.
    Run(GivenFlags),
    /// Show [`help`](crate::nvidia::help()).
    Help,
    /// Show the version.
    Version,
}

/// Values of flags and variables. A flag that was not given has no value here, not its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenFlags {
    pub(super) given: BTreeMap<&'static str, GivenValue>,
    /// Value of the variable `DP_DISABLE_HEALTHCHECKS`, which has no flag.
    pub(super) disable_xids: Option<String>,
    /// Value of the variable `DP_ENABLE_HEALTHCHECKS`, which has no flag.
    pub(super) enable_xids: Option<String>,
    /// Warnings: probable mistakes on the command line.
    pub warnings: Vec<ConfigProblem>,
}

/// Value of a flag with its origin: the flag or a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GivenValue {
    pub(super) value: FlagValue,
    pub(super) origin: ValueOrigin,
}

/// Value of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FlagValue {
    Text(String),
    Bool(bool),
    Texts(Vec<String>),
    Ints(Vec<i64>),
}

/// Reason why a command line cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// The plugin has no flag of that name.
    #[error("flag {flag} is not known; {help}")]
    Unknown {
        /// Flag as it was typed.
        flag: String,
        /// Remedy: a similar name, or a hint at `--help`.
        help: String,
    },
    /// The text does not have the form of a flag.
    #[error("`{text}` is not a flag; write --name, --name=value or --name value")]
    Syntax {
        /// Text as it was typed.
        text: String,
    },
    /// The value of a flag is missing.
    #[error("flag {flag} needs a value: write {flag}=VALUE")]
    NoValue {
        /// Flag as it was typed.
        flag: String,
    },
    /// The value has the wrong type.
    #[error("{origin}: `{value}` is not {expected}")]
    BadValue {
        /// Flag or variable.
        origin: ValueOrigin,
        /// Value as it was given.
        value: String,
        /// Description of a valid value.
        expected: &'static str,
    },
    // urfave/cli refuses that too: "Cannot use two forms of the same flag".
    /// A flag was given under both of its names.
    #[error("flags --{first} and --{second} are one and the same; give one of them")]
    TwoForms {
        /// Name that was given first.
        first: &'static str,
        /// Name that was given second.
        second: &'static str,
    },
}

// === impl GivenFlags ===

impl GivenFlags {
    /// Parses a command line without the program's name, and the environment. `env` returns the
    /// value of a variable.
    ///
    /// ```
    /// use config::nvidia::{GivenFlags, Invocation};
    ///
    /// let call = GivenFlags::parse_args(&["--mig-strategy=mixed"], &|_| None)?;
    /// assert!(matches!(call, Invocation::Run(_)));
    /// # Ok::<(), config::nvidia::FlagError>(())
    /// ```
    pub fn parse_args<S: AsRef<str>>(
        args: &[S],
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Invocation, FlagError> {
        parse::parse_command_line(args, env)
    }

    /// Returns the path of the config file. `None` if it is not given or empty.
    pub fn config_file(&self) -> Option<&str> {
        match self.given_value("config-file") {
            Some(FlagValue::Text(path)) if !path.is_empty() => Some(path),
            _ => None,
        }
    }

    pub(super) fn given_value(&self, name: &str) -> Option<&FlagValue> {
        self.given.get(name).map(|given| &given.value)
    }

    fn add_warning(&mut self, origin: ValueOrigin, message: String, help: &str) {
        self.warnings.push(ConfigProblem {
            severity: ProblemSeverity::Warning,
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
