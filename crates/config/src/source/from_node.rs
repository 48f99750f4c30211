//! Rules for reading the values of each type.

use std::{
    collections::BTreeMap, fmt::Display, ops::RangeInclusive, path::PathBuf, str::FromStr,
    time::Duration,
};

use super::{FileItem, Placed, ReadNotes, Word};
use crate::Period;

/// Type that is written the same way everywhere.
pub(crate) trait FromNode: Sized {
    /// Reads a value. `None` if it is invalid, with an error noted.
    fn from_node(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Self>;
}

// === impl FromNode ===

impl<T: Word> FromNode for T {
    fn from_node(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Self> {
        strip_place(item.choice(notes))
    }
}

impl FromNode for bool {
    fn from_node(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Self> {
        strip_place(item.read_bool(notes))
    }
}

impl FromNode for u32 {
    fn from_node(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Self> {
        strip_place(item.read_number(notes, 0..=Self::MAX))
    }
}

impl FromNode for String {
    fn from_node(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Self> {
        strip_place(item.read_string(notes))
    }
}

impl FromNode for PathBuf {
    fn from_node(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Self> {
        strip_place(item.read_path(notes))
    }
}

impl FromNode for Duration {
    fn from_node(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Self> {
        let help = "write a number and a unit, e.g. 500ms, 10s, 5m";
        strip_place(item.parse_string(notes, help)).map(Period::as_duration)
    }
}

impl<T: FromNode> FromNode for Option<T> {
    fn from_node(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Self> {
        T::from_node(item, notes).map(Some)
    }
}

impl<T: FromNode> FromNode for Vec<T> {
    /// Reads a list. A single value stands for a list of one.
    fn from_node(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Self> {
        list_of(T::from_node)(item, notes)
    }
}

/// Returns the rule for a whole number in a range.
pub(crate) fn number_within(
    range: RangeInclusive<u32>,
) -> impl Fn(&FileItem<'_>, &mut ReadNotes) -> Option<u32> {
    move |item, notes| strip_place(item.read_number(notes, range.clone()))
}

/// Returns the rule for a list, or a single value for a list of one. `read` is the rule for an
/// item. Invalid items are noted and left out.
pub(crate) fn list_of<T>(
    read: impl Fn(&FileItem<'_>, &mut ReadNotes) -> Option<T>,
) -> impl Fn(&FileItem<'_>, &mut ReadNotes) -> Option<Vec<T>> {
    move |item, notes| {
        let items = item.one_or_many();
        Some(items.iter().filter_map(|item| read(item, notes)).collect())
    }
}

/// Reads a command: a text for `/bin/sh -c`, or a list of a program and its arguments.
pub(crate) fn read_command(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Vec<String>> {
    let words: Vec<String> = if item.is_list() {
        let words = item.read_list(notes)?;
        let words = words.iter().map(|word| String::from_node(word, notes));
        words.collect::<Option<_>>()?
    } else {
        let text = String::from_node(item, notes)?;
        ["/bin/sh", "-c", &text].map(str::to_owned).into()
    };
    let text_is_empty = !item.is_list() && words.last().is_some_and(|text| text.trim().is_empty());
    if text_is_empty || words.first().is_some_and(String::is_empty) {
        let help = "write a text for `/bin/sh -c`, or a list: a program and its arguments";
        item.note_item_error(notes, "the command is empty", help);
        return None;
    }
    Some(words)
}

/// Returns the rule for a map whose names the user chooses. `name` parses a name; its error is a
/// message and its remedy.
pub(crate) fn map_by<K: Ord, T: FromNode>(
    name: impl Fn(&str) -> Result<K, (String, String)>,
) -> impl Fn(&FileItem<'_>, &mut ReadNotes) -> Option<BTreeMap<K, T>> {
    move |item, notes| {
        let mut found = BTreeMap::new();
        for (text, place, item) in item.read_fields(notes)?.items() {
            let name = match name(text) {
                Ok(name) => name,
                Err((message, help)) => {
                    notes.note_error(place, &item.key, message, help);
                    continue;
                }
            };
            let Some(value) = T::from_node(&item, notes) else {
                continue;
            };
            if found.insert(name, value).is_some() {
                notes.note_error(place, &item.key, "said twice", "remove one of them");
            }
        }
        Some(found)
    }
}

/// Returns the rule for a value that is written as a text. `help` is the remedy for an invalid
/// text.
pub(crate) fn parsed_text<T>(help: &str) -> impl Fn(&FileItem<'_>, &mut ReadNotes) -> Option<T>
where
    T: FromStr<Err: Display>,
{
    move |item, notes| strip_place(item.parse_string(notes, help))
}

fn strip_place<T>(said: Option<Placed<T>>) -> Option<T> {
    said.map(|said| said.value)
}
