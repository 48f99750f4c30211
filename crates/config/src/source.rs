//! Text of a config: its file, its tree with the place of every value, and the reader, which notes
//! every problem, not only the first.

mod at;
mod from_node;
mod reader;
mod suggest;
pub(crate) mod take;
mod tree;
mod word;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use host::small;

pub(crate) use self::{
    at::{Section, SectionReader, read_section},
    from_node::{FromNode, list_of, map_by, number_within, parsed_text, read_command},
    reader::{Dialect, FileFields, FileItem, ReadNotes},
    suggest::{among, nearest, unlike},
    tree::{TextPlace, YamlEntry, YamlNode, YamlValue},
    word::{Word, list_words, parse_word},
};
use crate::{Error, ValueOrigin, problem::Snippet};

/// Size of the largest file that is read, in bytes. A usual config has one or two pages.
pub(crate) const SIZE_LIMIT: u64 = 1 << 20;

/// Text with its name. Clones share the text.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct ConfigText(Arc<Inner>);

#[derive(Default, PartialEq, Eq)]
struct Inner {
    name: PathBuf,
    text: String,
}

/// Value that a file sets, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed<T> {
    /// Value as the file has it.
    pub value: T,
    pub(crate) place: TextPlace,
}

// === impl ConfigText ===

impl ConfigText {
    /// Makes a source of a text in memory.
    pub(crate) fn new(name: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        let (name, text) = (name.into(), text.into());
        Self(Arc::new(Inner { name, text }))
    }

    /// Reads a regular file; any other might never end. The exception is `/dev/null`, or a link to
    /// it, which is an empty config.
    pub(crate) fn load_text(path: &Path) -> Result<Self, Error> {
        // Only for its error, in which fs_err names the path.
        fs_err::metadata(path).map_err(Error::Read)?;
        let named = path.to_owned();
        match small::read_text(path, SIZE_LIMIT) {
            Ok(text) => Ok(Self::new(path, text)),
            Err(small::Error::NotAFile) if is_null(path) => Ok(Self::new(path, "")),
            Err(small::Error::NotAFile) => Err(Error::NotAFile { path: named }),
            Err(small::Error::TooLarge { .. }) => Err(Error::TooLarge { path: named }),
            Err(small::Error::NotText) => Err(Error::NotText { path: named }),
            Err(small::Error::Io(error)) => {
                let message = format!("failed to open file `{}`: {error}", path.display());
                Err(Error::Read(io::Error::new(error.kind(), message)))
            }
        }
    }

    /// Returns the text without its byte order mark.
    pub(crate) fn as_text(&self) -> &str {
        let text = &self.0.text;
        text.strip_prefix('\u{feff}').unwrap_or(text)
    }

    /// Returns the origin of the value at a place.
    pub(crate) fn origin(&self, place: TextPlace) -> ValueOrigin {
        ValueOrigin::File {
            path: self.0.name.clone(),
            line: place.line,
            column: place.column,
        }
    }

    /// Returns the line of a place, with the place marked.
    pub(crate) fn snippet(&self, place: TextPlace) -> Option<Snippet> {
        let line = self.as_text().lines().nth(place.line.checked_sub(1)?)?;
        Some(Snippet::new(line, place.column, place.width))
    }
}

impl fmt::Debug for ConfigText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({})", self.0.name.display())
    }
}

// === impl Placed ===

impl<T> Placed<T> {
    pub(crate) fn map_value<U>(self, map: impl FnOnce(T) -> U) -> Placed<U> {
        Placed {
            value: map(self.value),
            place: self.place,
        }
    }
}

// The schema of a value does not show its place.
impl<T: schemars::JsonSchema> schemars::JsonSchema for Placed<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }

    // schemars asks it whether a field of the type may be left out.
    fn _schemars_private_is_option() -> bool {
        T::_schemars_private_is_option()
    }
}

// NVIDIA's config-manager links the config to `/dev/null` if no config is chosen for the node
// (cmd/config-manager/main.go).
/// Returns true if the path is `/dev/null` or a link to it.
fn is_null(path: &Path) -> bool {
    fs_err::canonicalize(path).is_ok_and(|path| path == Path::new("/dev/null"))
}

#[cfg(test)]
mod tests;
