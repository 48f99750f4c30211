//! Takes a key out of a map of NVIDIA's file and reads its value. `None` if the key is missing, or
//! null, or has an invalid value, with an error noted.

use super::{FileFields, FileItem, Placed, ReadNotes};

/// Reads a list. A single value stands for a list of one. Invalid items are noted and left out.
pub(crate) fn take_list<T>(
    at: &mut FileFields<'_>,
    notes: &mut ReadNotes,
    name: &'static str,
    read: impl Fn(&FileItem<'_>, &mut ReadNotes) -> Option<T>,
) -> Option<Placed<Vec<T>>> {
    let item = at.take_key(notes, name)?;
    let values = item.one_or_many();
    let values = values.iter().filter_map(|item| read(item, notes)).collect();
    Some(item.with_place(values))
}

/// Reads a list of texts, or one text.
pub(crate) fn take_strings(
    at: &mut FileFields<'_>,
    notes: &mut ReadNotes,
    name: &'static str,
) -> Option<Placed<Vec<String>>> {
    take_list(at, notes, name, |item, notes| {
        item.read_string(notes).map(|said| said.value)
    })
}

/// Reads a text.
pub(crate) fn take_string(
    at: &mut FileFields<'_>,
    notes: &mut ReadNotes,
    name: &'static str,
) -> Option<Placed<String>> {
    at.take_key(notes, name)?.read_string(notes)
}

/// Reads a bool.
pub(crate) fn take_bool(
    at: &mut FileFields<'_>,
    notes: &mut ReadNotes,
    name: &'static str,
) -> Option<Placed<bool>> {
    at.take_key(notes, name)?.read_bool(notes)
}

/// Reads a map. One that is missing has its defaults.
pub(crate) fn take_section<T: Default>(
    at: &mut FileFields<'_>,
    notes: &mut ReadNotes,
    name: &'static str,
    read: impl FnOnce(&mut FileFields<'_>, &mut ReadNotes) -> T,
) -> T {
    match at.take_key(notes, name) {
        Some(item) => read_map(&item, notes, read),
        None => T::default(),
    }
}

/// Reads the keys of a map, and notes unknown ones.
pub(crate) fn read_map<T: Default>(
    item: &FileItem<'_>,
    notes: &mut ReadNotes,
    read: impl FnOnce(&mut FileFields<'_>, &mut ReadNotes) -> T,
) -> T {
    let Some(mut fields) = item.read_fields(notes) else {
        return T::default();
    };
    let value = read(&mut fields, notes);
    fields.note_unknown_keys(notes);
    value
}
