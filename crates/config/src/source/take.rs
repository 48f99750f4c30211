//! Takes a key out of a map of NVIDIA's file and reads its value. `None` if the key is missing, or
//! null, or has an invalid value, with an error noted.

use super::{Fields, Item, Notes, Said};

/// Reads a list. A single value stands for a list of one. Invalid items are noted and left out.
pub(crate) fn many<T>(
    at: &mut Fields<'_>,
    notes: &mut Notes,
    name: &'static str,
    read: impl Fn(&Item<'_>, &mut Notes) -> Option<T>,
) -> Option<Said<Vec<T>>> {
    let item = at.take(notes, name)?;
    let values = item.one_or_many();
    let values = values.iter().filter_map(|item| read(item, notes)).collect();
    Some(item.said(values))
}

/// Reads a list of texts, or one text.
pub(crate) fn texts(
    at: &mut Fields<'_>,
    notes: &mut Notes,
    name: &'static str,
) -> Option<Said<Vec<String>>> {
    many(at, notes, name, |item, notes| {
        item.text(notes).map(|said| said.value)
    })
}

/// Reads a text.
pub(crate) fn text(
    at: &mut Fields<'_>,
    notes: &mut Notes,
    name: &'static str,
) -> Option<Said<String>> {
    at.take(notes, name)?.text(notes)
}

/// Reads a bool.
pub(crate) fn boolean(
    at: &mut Fields<'_>,
    notes: &mut Notes,
    name: &'static str,
) -> Option<Said<bool>> {
    at.take(notes, name)?.boolean(notes)
}

/// Reads a map. One that is missing has its defaults.
pub(crate) fn section<T: Default>(
    at: &mut Fields<'_>,
    notes: &mut Notes,
    name: &'static str,
    read: impl FnOnce(&mut Fields<'_>, &mut Notes) -> T,
) -> T {
    match at.take(notes, name) {
        Some(item) => inside(&item, notes, read),
        None => T::default(),
    }
}

/// Reads the keys of a map, and notes unknown ones.
pub(crate) fn inside<T: Default>(
    item: &Item<'_>,
    notes: &mut Notes,
    read: impl FnOnce(&mut Fields<'_>, &mut Notes) -> T,
) -> T {
    let Some(mut fields) = item.fields(notes) else {
        return T::default();
    };
    let value = read(&mut fields, notes);
    fields.finish(notes);
    value
}
