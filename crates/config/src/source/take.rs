//! Takes a key out of a map and reads its value; `None` where the key is not there, or says
//! nothing, or something wrong, which is then noted.

use super::{Fields, Item, Notes, Said};

/// A list, or one value that stands for a list of one.
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

/// Texts.
pub(crate) fn texts(
    at: &mut Fields<'_>,
    notes: &mut Notes,
    name: &'static str,
) -> Option<Said<Vec<String>>> {
    many(at, notes, name, |item, notes| {
        item.text(notes).map(|said| said.value)
    })
}

/// A text.
pub(crate) fn text(
    at: &mut Fields<'_>,
    notes: &mut Notes,
    name: &'static str,
) -> Option<Said<String>> {
    at.take(notes, name)?.text(notes)
}

/// True or false.
pub(crate) fn boolean(
    at: &mut Fields<'_>,
    notes: &mut Notes,
    name: &'static str,
) -> Option<Said<bool>> {
    at.take(notes, name)?.boolean(notes)
}

/// Reads a map that may be left out.
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

/// Reads the keys of a map, and notes those that are unknown.
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
