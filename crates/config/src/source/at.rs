//! Reads a map of the file over its defaults. One call for an option takes its key, parses its
//! value, notes its problems, and keeps its place, from which its origin follows.

use std::collections::BTreeMap;

use super::{FileFields, FileItem, FromNode, ReadNotes, TextPlace};

/// Map of the config. Its fields are the options; before `read` they have their defaults.
pub(crate) trait Section {
    /// Reads every option that the file sets over its default, and checks the options together.
    fn read_options(&mut self, at: &mut SectionReader<'_>);
}

/// Map of the file that is being read.
pub(crate) struct SectionReader<'a> {
    fields: FileFields<'a>,
    notes: &'a mut ReadNotes,
}

// === impl SectionReader ===

impl<'a> SectionReader<'a> {
    /// Reads an option by the rule of its type.
    pub(crate) fn set_option<T: FromNode>(&mut self, name: &'static str, value: &mut T) {
        self.set_by(name, value, T::from_node);
    }

    /// Reads an option by a rule of its own.
    pub(crate) fn set_by<T>(
        &mut self,
        name: &'static str,
        value: &mut T,
        read: impl FnOnce(&FileItem<'_>, &mut ReadNotes) -> Option<T>,
    ) {
        if let Some(item) = self.take_option(name)
            && let Some(found) = read(&item, self.notes)
        {
            *value = found;
            self.notes.keep_place(item.key.clone(), item.value_place());
        }
    }

    /// Reads a map inside this one, and returns its place. `None` if the file does not have it or
    /// it is not a map.
    pub(crate) fn set_section(
        &mut self,
        name: &'static str,
        section: &mut impl Section,
    ) -> Option<TextPlace> {
        let item = self.take_option(name)?;
        read_section(&item, self.notes, section).then(|| item.value_place())
    }

    /// Reads a map inside this one that may be written as one word, the value of its option
    /// `short`. `value` returns the field of that option. Returns true if the file has a word.
    pub(crate) fn section_or<S: Section, T: FromNode>(
        &mut self,
        name: &'static str,
        section: &mut S,
        short: &'static str,
        value: impl FnOnce(&mut S) -> &mut T,
    ) -> bool {
        let Some(item) = self.take_option(name) else {
            return false;
        };
        if item.is_map() {
            read_section(&item, self.notes, section);
            return false;
        }
        if let Some(found) = T::from_node(&item, self.notes) {
            *value(section) = found;
            self.notes
                .keep_place(format!("{}.{short}", item.key), item.value_place());
        }
        true
    }

    /// Reads a list of maps, each over the same defaults. `None` if the file has no such list.
    pub(crate) fn sections<S: Section + Clone>(
        &mut self,
        name: &'static str,
        defaults: &S,
    ) -> Option<Vec<S>> {
        let items = self.take_option(name)?.read_list(self.notes)?;
        let read = |item: &FileItem<'_>| {
            let mut section = defaults.clone();
            read_section(item, self.notes, &mut section);
            section
        };
        Some(items.iter().map(read).collect())
    }

    /// Reads the maps of all keys that were not taken yet, whose names the user chooses. `name`
    /// parses such a name; its error is a message and its remedy.
    pub(crate) fn take_named_sections<S: Section + Default>(
        &mut self,
        name: impl Fn(&str) -> Result<String, (String, String)>,
    ) -> BTreeMap<String, S> {
        let mut found = BTreeMap::new();
        for (text, place, item) in self.fields.take_rest() {
            let mut section = S::default();
            match name(text) {
                Ok(name) => {
                    if read_section(&item, self.notes, &mut section)
                        && found.insert(name, section).is_some()
                    {
                        let (message, help) = ("said twice", "remove one of them");
                        self.notes.note_error(place, &item.key, message, help);
                    }
                }
                Err((message, help)) => self.notes.note_error(place, &item.key, message, help),
            }
        }
        found
    }

    /// Reads a text that must be set and not empty. `help` is the remedy.
    pub(crate) fn require<T: From<String>>(
        &mut self,
        name: &'static str,
        value: &mut T,
        help: &str,
    ) {
        let Some(item) = self.take_option(name) else {
            self.note_option_error(name, format!("`{name}` is missing"), help);
            return;
        };
        match String::from_node(&item, self.notes) {
            Some(text) if text.is_empty() => {
                item.note_item_error(self.notes, format!("`{name}` is empty"), help);
            }
            Some(text) => {
                *value = text.into();
                self.notes.keep_place(item.key.clone(), item.value_place());
            }
            None => {}
        }
    }

    /// Returns true if the file has the key, even with an invalid value.
    pub(crate) fn has_key(&self, name: &str) -> bool {
        let mut items = self.fields.items().into_iter();
        items.any(|(key, ..)| key == name)
    }

    /// Returns the place of a value that the file has and that is valid.
    pub(crate) fn option_place(&self, name: &str) -> Option<TextPlace> {
        self.notes.kept_place(&self.fields.full_key(name))
    }

    /// Notes an error at the value of an option, or at the map if the option has no valid value.
    pub(crate) fn note_option_error(
        &mut self,
        name: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let place = self.option_place(name).unwrap_or(self.fields.place);
        self.error_at(place, name, message, help);
    }

    /// Notes an error of an option at a given place.
    pub(crate) fn error_at(
        &mut self,
        place: TextPlace,
        name: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.notes
            .note_error(place, &self.fields.full_key(name), message, help);
    }

    /// Notes an error of an option at its key.
    pub(crate) fn error_at_key(
        &mut self,
        name: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.error_at(self.fields.key_place(name), name, message, help);
    }

    /// Notes a warning about an option at a given place.
    pub(crate) fn warn_at(
        &mut self,
        place: TextPlace,
        name: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.notes
            .note_warning(place, &self.fields.full_key(name), message, help);
    }

    fn take_option(&mut self, name: &'static str) -> Option<FileItem<'a>> {
        self.fields.take_key(self.notes, name)
    }
}

/// Reads a map, and notes its unknown keys. Returns false, with an error noted, if the value is not
/// a map.
pub(crate) fn read_section(
    item: &FileItem<'_>,
    notes: &mut ReadNotes,
    section: &mut impl Section,
) -> bool {
    let Some(fields) = item.read_fields(notes) else {
        return false;
    };
    let mut at = SectionReader { fields, notes };
    section.read_options(&mut at);
    at.fields.note_unknown_keys(at.notes);
    true
}
