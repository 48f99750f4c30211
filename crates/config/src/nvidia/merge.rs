//! Flags and variables over the file, the file over the defaults.

use super::{
    File, Flags,
    flags::{Value, spec},
};
use crate::{
    Origin, Problem, Severity,
    source::{Place, Said, Word, word},
};

/// A value, who said it, and whether anybody did.
#[derive(Clone, Debug)]
pub(super) struct Pick<T> {
    pub(super) value: T,
    pub(super) origin: Origin,
    place: Option<Place>,
    key: &'static str,
}

/// Every value, and what is wrong with them.
#[derive(Debug)]
pub(super) struct Merge<'a> {
    pub(super) flags: &'a Flags,
    pub(super) file: &'a File,
    pub(super) problems: Vec<Problem>,
}

/// A kind of value that flags can have.
pub(super) trait Kind: Clone {
    /// The value, if it is of this kind.
    fn of(value: &Value) -> Option<Self>;
}

// === impl Merge ===

impl Merge<'_> {
    /// The value of a flag; `None` where nobody said anything. `key` is its key in the file.
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

    /// The text of a flag, or its default.
    pub(super) fn text(
        &self,
        name: &str,
        key: &'static str,
        file: &Option<Said<String>>,
    ) -> Pick<String> {
        let said = self.said(name, key, file);
        said.unwrap_or_else(|| Pick::default_text(name, key))
    }

    /// Like [`Self::text`], with an empty text as if nobody had said anything.
    pub(super) fn path(
        &self,
        name: &str,
        key: &'static str,
        file: &Option<Said<String>>,
    ) -> Pick<String> {
        self.path_or(name, key, file, &Pick::default_text(name, key))
    }

    /// Like [`Self::path`], with another default.
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

    /// Whether a switch is on.
    pub(super) fn is(
        &self,
        name: &str,
        key: &'static str,
        file: &Option<Said<bool>>,
    ) -> Pick<bool> {
        let said = self.said(name, key, file);
        said.unwrap_or_else(|| Pick::default_of(false, key))
    }

    /// One of a few words; anything else is a problem.
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

    /// A problem at a place of the file.
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
    /// The default of a flag.
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
