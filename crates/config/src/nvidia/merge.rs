//! Merges the values of NVIDIA's flags, variables and file. Flags win over variables, variables
//! over the file, the file over the defaults.

use super::{
    GivenFlags, V1File,
    flags::{FlagValue, find_spec},
};
use crate::{
    ConfigProblem, ProblemSeverity, ValueOrigin,
    source::{Placed, TextPlace, Word, parse_word},
};

/// Value with its origin. The place is set if it comes from the file.
#[derive(Clone, Debug)]
pub(super) struct MergedValue<T> {
    pub(super) value: T,
    pub(super) origin: ValueOrigin,
    place: Option<TextPlace>,
    key: &'static str,
}

/// Flags and file that are merged, with the problems that are found.
#[derive(Debug)]
pub(super) struct FlagMerge<'a> {
    pub(super) flags: &'a GivenFlags,
    pub(super) file: &'a V1File,
    pub(super) problems: Vec<ConfigProblem>,
}

/// Type that a flag's value can have.
pub(super) trait FromFlagValue: Clone {
    /// Returns the value if it has this type.
    fn from_flag_value(value: &FlagValue) -> Option<Self>;
}

// === impl FlagMerge ===

impl FlagMerge<'_> {
    /// Returns the value of a flag, variable or key. `None` if none is set. `key` is the key in the
    /// file.
    pub(super) fn given_or_file<T: FromFlagValue>(
        &self,
        name: &str,
        key: &'static str,
        file: &Option<Placed<T>>,
    ) -> Option<MergedValue<T>> {
        let given = self.flags.given.get(name);
        if let Some((value, given)) =
            given.and_then(|given| Some((T::from_flag_value(&given.value)?, given)))
        {
            return Some(MergedValue {
                value,
                origin: given.origin.clone(),
                place: None,
                key,
            });
        }
        file.as_ref().map(|said| MergedValue {
            value: said.value.clone(),
            origin: self.file.source.origin(said.place),
            place: Some(said.place),
            key,
        })
    }

    /// Returns a text, or the default of its flag.
    pub(super) fn merge_text(
        &self,
        name: &str,
        key: &'static str,
        file: &Option<Placed<String>>,
    ) -> MergedValue<String> {
        let said = self.given_or_file(name, key, file);
        said.unwrap_or_else(|| MergedValue::default_text(name, key))
    }

    /// As [`Self::merge_text`], but an empty text counts as not set.
    pub(super) fn merge_path(
        &self,
        name: &str,
        key: &'static str,
        file: &Option<Placed<String>>,
    ) -> MergedValue<String> {
        self.path_or(name, key, file, &MergedValue::default_text(name, key))
    }

    /// As [`Self::merge_path`], with another default.
    pub(super) fn path_or(
        &self,
        name: &str,
        key: &'static str,
        file: &Option<Placed<String>>,
        default: &MergedValue<String>,
    ) -> MergedValue<String> {
        let said = self
            .given_or_file(name, key, file)
            .filter(|pick| !pick.value.is_empty());
        said.unwrap_or_else(|| default.clone())
    }

    /// Returns a bool. Default: false.
    pub(super) fn merge_bool(
        &self,
        name: &str,
        key: &'static str,
        file: &Option<Placed<bool>>,
    ) -> MergedValue<bool> {
        let said = self.given_or_file(name, key, file);
        said.unwrap_or_else(|| MergedValue::default_of(false, key))
    }

    /// Parses one of a few words. Any other text is noted as an error.
    pub(super) fn merge_choice<T: Word>(&mut self, pick: &MergedValue<String>) -> Option<T> {
        match parse_word(&pick.value) {
            Ok(value) => Some(value),
            Err((message, help)) => {
                self.note_flag_error(pick, message, help);
                None
            }
        }
    }

    pub(super) fn note_flag_error<T>(
        &mut self,
        pick: &MergedValue<T>,
        message: String,
        help: impl Into<String>,
    ) {
        self.note_flag_problem(ProblemSeverity::Error, pick, message, help.into());
    }

    pub(super) fn note_flag_warning<T>(
        &mut self,
        pick: &MergedValue<T>,
        message: String,
        help: impl Into<String>,
    ) {
        self.note_flag_problem(ProblemSeverity::Warning, pick, message, help.into());
    }

    fn note_flag_problem<T>(
        &mut self,
        severity: ProblemSeverity,
        pick: &MergedValue<T>,
        message: String,
        help: String,
    ) {
        let key = match pick.place {
            Some(_) => pick.key.to_owned(),
            None => String::new(),
        };
        self.problems.push(ConfigProblem {
            severity,
            at: pick.origin.clone(),
            key,
            message,
            help,
            snippet: pick.place.and_then(|place| self.file.source.snippet(place)),
        });
    }

    /// Notes a problem at a place of the file.
    pub(super) fn note_file_problem(
        &mut self,
        severity: ProblemSeverity,
        place: TextPlace,
        key: &str,
        words: (String, &str),
    ) {
        self.problems.push(ConfigProblem {
            severity,
            at: self.file.source.origin(place),
            key: key.to_owned(),
            message: words.0,
            help: words.1.to_owned(),
            snippet: self.file.source.snippet(place),
        });
    }
}

// === impl MergedValue ===

impl<T> MergedValue<T> {
    fn default_of(value: T, key: &'static str) -> Self {
        Self {
            value,
            origin: ValueOrigin::Default,
            place: None,
            key,
        }
    }
}

impl MergedValue<String> {
    /// Returns the default of a flag.
    fn default_text(name: &str, key: &'static str) -> Self {
        let default = find_spec(name).map_or("", |spec| spec.default);
        Self::default_of(default.to_owned(), key)
    }
}

// === impl FromFlagValue ===

impl FromFlagValue for String {
    fn from_flag_value(value: &FlagValue) -> Option<Self> {
        match value {
            FlagValue::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl FromFlagValue for bool {
    fn from_flag_value(value: &FlagValue) -> Option<Self> {
        match value {
            FlagValue::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

impl FromFlagValue for Vec<String> {
    fn from_flag_value(value: &FlagValue) -> Option<Self> {
        match value {
            FlagValue::Texts(texts) => Some(texts.clone()),
            _ => None,
        }
    }
}

impl FromFlagValue for Vec<i64> {
    fn from_flag_value(value: &FlagValue) -> Option<Self> {
        match value {
            FlagValue::Ints(ints) => Some(ints.clone()),
            _ => None,
        }
    }
}
