//! Merges the values of NVIDIA's flags, variables and file. Flags win over variables, variables
//! over the file, the file over the defaults.

use super::{
    File, Flags,
    flags::{Value, spec},
};
use crate::{
    Origin, Problem, Severity,
    source::{Place, Said, Word, word},
};

/// Value with its origin. The place is set if it comes from the file.
#[derive(Clone, Debug)]
pub(super) struct Pick<T> {
    pub(super) value: T,
    pub(super) origin: Origin,
    place: Option<Place>,
    key: &'static str,
}

/// Flags and file that are merged, with the problems that are found.
#[derive(Debug)]
pub(super) struct Merge<'a> {
    pub(super) flags: &'a Flags,
    pub(super) file: &'a File,
    pub(super) problems: Vec<Problem>,
}

/// Type that a flag's value can have.
pub(super) trait Kind: Clone {
    /// Returns the value if it has this type.
    fn of(value: &Value) -> Option<Self>;
}

// === impl Merge ===

impl Merge<'_> {
    /// Returns the value of a flag, variable or key. `None` if none is set. `key` is the key in the
    /// file.
    pub(super) fn said<T: Kind>(
        &self,
        name: &str,
        key: &'static str,
        file: &Option<Said<T>>,
    ) -> Option<Pick<T>> {
        let given = self.flags.given.get(name);
        if let Some((value, given)) = given.and_then(|given| Some((T::of(&given.value)?, given))) {
            return Some(Pick {
                value,
                origin: given.origin.clone(),
                place: None,
                key,
            });
        }
        file.as_ref().map(|said| Pick {
            value: said.value.clone(),
            origin: self.file.source.origin(said.place),
            place: Some(said.place),
            key,
        })
    }

    /// Returns a text, or the default of its flag.
    pub(super) fn text(
        &self,
        name: &str,
        key: &'static str,
        file: &Option<Said<String>>,
    ) -> Pick<String> {
        let said = self.said(name, key, file);
        said.unwrap_or_else(|| Pick::default_text(name, key))
    }

    /// As [`Self::text`], but an empty text counts as not set.
    pub(super) fn path(
        &self,
        name: &str,
        key: &'static str,
        file: &Option<Said<String>>,
    ) -> Pick<String> {
        self.path_or(name, key, file, &Pick::default_text(name, key))
    }

    /// As [`Self::path`], with another default.
    pub(super) fn path_or(
        &self,
        name: &str,
        key: &'static str,
        file: &Option<Said<String>>,
        default: &Pick<String>,
    ) -> Pick<String> {
        let said = self
            .said(name, key, file)
            .filter(|pick| !pick.value.is_empty());
        said.unwrap_or_else(|| default.clone())
    }

    /// Returns a bool. Default: false.
    pub(super) fn is(
        &self,
        name: &str,
        key: &'static str,
        file: &Option<Said<bool>>,
    ) -> Pick<bool> {
        let said = self.said(name, key, file);
        said.unwrap_or_else(|| Pick::default_of(false, key))
    }

    /// Parses one of a few words. Any other text is noted as an error.
    pub(super) fn word<T: Word>(&mut self, pick: &Pick<String>) -> Option<T> {
        match word(&pick.value) {
            Ok(value) => Some(value),
            Err((message, help)) => {
                self.error(pick, message, help);
                None
            }
        }
    }

    pub(super) fn error<T>(&mut self, pick: &Pick<T>, message: String, help: impl Into<String>) {
        self.note(Severity::Error, pick, message, help.into());
    }

    pub(super) fn warn<T>(&mut self, pick: &Pick<T>, message: String, help: impl Into<String>) {
        self.note(Severity::Warning, pick, message, help.into());
    }

    fn note<T>(&mut self, severity: Severity, pick: &Pick<T>, message: String, help: String) {
        let key = match pick.place {
            Some(_) => pick.key.to_owned(),
            None => String::new(),
        };
        self.problems.push(Problem {
            severity,
            at: pick.origin.clone(),
            key,
            message,
            help,
            snippet: pick.place.and_then(|place| self.file.source.snippet(place)),
        });
    }

    /// Notes a problem at a place of the file.
    pub(super) fn at(
        &mut self,
        severity: Severity,
        place: Place,
        key: &str,
        words: (String, &str),
    ) {
        self.problems.push(Problem {
            severity,
            at: self.file.source.origin(place),
            key: key.to_owned(),
            message: words.0,
            help: words.1.to_owned(),
            snippet: self.file.source.snippet(place),
        });
    }
}

// === impl Pick ===

impl<T> Pick<T> {
    fn default_of(value: T, key: &'static str) -> Self {
        Self {
            value,
            origin: Origin::Default,
            place: None,
            key,
        }
    }
}

impl Pick<String> {
    /// Returns the default of a flag.
    fn default_text(name: &str, key: &'static str) -> Self {
        let default = spec(name).map_or("", |spec| spec.default);
        Self::default_of(default.to_owned(), key)
    }
}

// === impl Kind ===

impl Kind for String {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl Kind for bool {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

impl Kind for Vec<String> {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Texts(texts) => Some(texts.clone()),
            _ => None,
        }
    }
}

impl Kind for Vec<i64> {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Ints(ints) => Some(ints.clone()),
            _ => None,
        }
    }
}
