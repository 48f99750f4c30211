//! Walks through a tree, key by key, and notes every problem.

use std::{collections::BTreeMap, fmt::Display, ops::RangeInclusive, path::PathBuf, str::FromStr};

use super::{
    ConfigText, Placed, TextPlace, Word, YamlEntry, YamlNode, YamlValue, among, parse_word, tree,
};
use crate::{ConfigProblem, Origins, ProblemSeverity};

/// Strictness of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `ostler.yaml`: an unknown key is an error.
    Native,
    // The plugin reads its file with sigs.k8s.io/yaml (api/config/v1/config.go, parseConfigFrom):
    // YAML 1.1 to JSON, then encoding/json, which matches keys in any case and ignores unknown
    // ones. An ignored key is still worth a warning.
    /// NVIDIA's v1 file, as the plugin in Go reads it: keys in any case, an unknown key is a
    /// warning, the last one of duplicate keys counts, `yes` and `on` are bools.
    Go,
}

/// Problems and places that were noted while a text was read.
#[derive(Debug)]
pub(crate) struct ReadNotes {
    pub(crate) source: ConfigText,
    pub(crate) dialect: Dialect,
    pub(crate) problems: Vec<ConfigProblem>,
    /// Places of the values that were taken, by full key.
    places: BTreeMap<String, TextPlace>,
}

/// Value with its full key.
#[derive(Clone, Debug)]
pub(crate) struct FileItem<'n> {
    pub(crate) key: String,
    pub(crate) node: &'n YamlNode,
}

/// Keys of a map, taken one by one. Those that are left at the end are unknown.
#[derive(Debug)]
pub(crate) struct FileFields<'n> {
    pub(crate) place: TextPlace,
    path: String,
    entries: &'n [YamlEntry],
    known: Vec<&'static str>,
    /// True if the user chooses the names of the other keys: none is unknown.
    is_open: bool,
}

// === impl ReadNotes ===

impl ReadNotes {
    pub(crate) fn new(source: ConfigText, dialect: Dialect) -> Self {
        Self {
            source,
            dialect,
            problems: Vec::new(),
            places: BTreeMap::new(),
        }
    }

    /// Parses the text into a tree. `None` if the text is empty, or broken, with an error noted.
    pub(crate) fn parse_tree(&mut self) -> Option<YamlNode> {
        match tree::parse_yaml(self.source.clone().as_text()) {
            Ok(tree) => tree,
            Err(fault) => {
                self.note_error(fault.place, "", fault.message, fault.help);
                None
            }
        }
    }

    pub(crate) fn note_error(
        &mut self,
        place: TextPlace,
        key: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.note_problem(
            ProblemSeverity::Error,
            place,
            key,
            (message.into(), help.into()),
        );
    }

    pub(crate) fn note_warning(
        &mut self,
        place: TextPlace,
        key: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.note_problem(
            ProblemSeverity::Warning,
            place,
            key,
            (message.into(), help.into()),
        );
    }

    /// Notes an error in our own dialect, a warning in NVIDIA's.
    fn complain(&mut self, place: TextPlace, key: &str, words: (String, String)) {
        let severity = match self.dialect {
            Dialect::Native => ProblemSeverity::Error,
            Dialect::Go => ProblemSeverity::Warning,
        };
        self.note_problem(severity, place, key, words);
    }

    fn note_problem(
        &mut self,
        severity: ProblemSeverity,
        place: TextPlace,
        key: &str,
        words: (String, String),
    ) {
        self.problems.push(ConfigProblem {
            severity,
            at: self.source.origin(place),
            key: key.to_owned(),
            message: words.0,
            help: words.1,
            snippet: self.source.snippet(place),
        });
    }

    /// Keeps the place of a value that was taken.
    pub(crate) fn keep_place(&mut self, key: String, place: TextPlace) {
        self.places.insert(key, place);
    }

    /// Returns the place of a value that was taken.
    pub(crate) fn kept_place(&self, key: &str) -> Option<TextPlace> {
        self.places.get(key).copied()
    }

    /// Returns the origin of every value that was taken.
    pub(crate) fn list_origins(&self) -> Origins {
        let origin =
            |(key, place): (&String, &TextPlace)| (key.clone(), self.source.origin(*place));
        self.places.iter().map(origin).collect()
    }

    /// Returns true if the file cannot be used.
    pub(crate) fn has_errors(&self) -> bool {
        self.problems.iter().any(ConfigProblem::is_error)
    }
}

// === impl FileItem ===

impl<'n> FileItem<'n> {
    /// Makes the item of the whole file, with an empty key.
    pub(crate) fn of_file(node: &'n YamlNode) -> Self {
        Self {
            key: String::new(),
            node,
        }
    }

    pub(crate) fn value_place(&self) -> TextPlace {
        self.node.place
    }

    pub(crate) fn with_place<T>(&self, value: T) -> Placed<T> {
        Placed {
            value,
            place: self.node.place,
        }
    }

    pub(crate) fn note_item_error(
        &self,
        notes: &mut ReadNotes,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        notes.note_error(self.node.place, &self.key, message, help);
    }

    /// Returns a single value as a text, and true if it is plain, i.e. not in quotes.
    pub(crate) fn scalar(&self) -> Option<(&'n str, bool)> {
        match &self.node.value {
            YamlValue::Scalar { text, plain } => Some((text, *plain)),
            _ => None,
        }
    }

    fn note_mismatch(&self, notes: &mut ReadNotes, expected: &str, help: &str) {
        let found = match &self.node.value {
            YamlValue::Null => "nothing".to_owned(),
            YamlValue::Scalar { text, .. } => format!("`{text}`"),
            YamlValue::List(_) => "a list".to_owned(),
            YamlValue::Map(_) => "a map".to_owned(),
        };
        self.note_item_error(notes, format!("expected {expected}, found {found}"), help);
    }

    pub(crate) fn read_string(&self, notes: &mut ReadNotes) -> Option<Placed<String>> {
        let Some((text, _)) = self.scalar() else {
            self.note_mismatch(notes, "a text", "write one value");
            return None;
        };
        Some(self.with_place(text.to_owned()))
    }

    pub(crate) fn read_path(&self, notes: &mut ReadNotes) -> Option<Placed<PathBuf>> {
        let text = self.read_string(notes)?;
        if text.value.is_empty() {
            let help = "name a file or folder, or leave the key out";
            self.note_item_error(notes, "the path is empty", help);
            return None;
        }
        Some(text.map_value(PathBuf::from))
    }

    /// Reads a value that is written as a text. `help` is the remedy for an invalid text.
    pub(crate) fn parse_string<T>(&self, notes: &mut ReadNotes, help: &str) -> Option<Placed<T>>
    where
        T: FromStr<Err: Display>,
    {
        let text = self.read_string(notes)?;
        match text.value.parse() {
            Ok(value) => Some(self.with_place(value)),
            Err(error) => {
                self.note_item_error(notes, error.to_string(), help);
                None
            }
        }
    }

    pub(crate) fn read_bool(&self, notes: &mut ReadNotes) -> Option<Placed<bool>> {
        let go = notes.dialect == Dialect::Go;
        let value = match self.scalar() {
            Some(("true" | "True" | "TRUE", true)) => Some(true),
            Some(("false" | "False" | "FALSE", true)) => Some(false),
            // Bools of YAML 1.1, which the plugin's reader follows. YAML 1.2 has none of them.
            Some(("yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y", true)) if go => {
                Some(true)
            }
            Some(("no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N", true)) if go => {
                Some(false)
            }
            _ => None,
        };
        if value.is_none() {
            self.note_mismatch(
                notes,
                "true or false",
                "write true or false, without quotes",
            );
        }
        value.map(|value| self.with_place(value))
    }

    pub(crate) fn read_number(
        &self,
        notes: &mut ReadNotes,
        range: RangeInclusive<u32>,
    ) -> Option<Placed<u32>> {
        let number = match self.scalar() {
            Some((text, true)) => text.parse::<u32>().ok(),
            _ => None,
        };
        let (least, most) = (range.start(), range.end());
        let help = format!("write a whole number from {least} to {most}");
        match number {
            Some(number) if range.contains(&number) => Some(self.with_place(number)),
            Some(number) => {
                self.note_item_error(notes, format!("{number} is out of range"), help);
                None
            }
            None => {
                self.note_mismatch(notes, "a whole number", &help);
                None
            }
        }
    }

    /// Reads one of a few words.
    pub(crate) fn choice<T: Word>(&self, notes: &mut ReadNotes) -> Option<Placed<T>> {
        match parse_word(&self.read_string(notes)?.value) {
            Ok(value) => Some(self.with_place(value)),
            Err((message, help)) => {
                self.note_item_error(notes, message, help);
                None
            }
        }
    }

    /// Returns the items of a list.
    pub(crate) fn read_list(&self, notes: &mut ReadNotes) -> Option<Vec<FileItem<'n>>> {
        let YamlValue::List(list) = &self.node.value else {
            self.note_mismatch(
                notes,
                "a list",
                "write `[…]`, or lines that begin with `- `",
            );
            return None;
        };
        Some(self.numbered(list))
    }

    /// Returns the items of a list. A single value is a list of one.
    pub(crate) fn one_or_many(&self) -> Vec<FileItem<'n>> {
        match &self.node.value {
            YamlValue::List(list) => self.numbered(list),
            _ => vec![self.clone()],
        }
    }

    fn numbered(&self, list: &'n [YamlNode]) -> Vec<FileItem<'n>> {
        let item = |(n, node)| FileItem {
            key: format!("{}[{n}]", self.key),
            node,
        };
        list.iter().enumerate().map(item).collect()
    }

    /// Returns the keys of a map.
    pub(crate) fn read_fields(&self, notes: &mut ReadNotes) -> Option<FileFields<'n>> {
        let YamlValue::Map(entries) = &self.node.value else {
            self.note_mismatch(notes, "a map", "write lines of `key: value`");
            return None;
        };
        Some(FileFields {
            place: self.node.place,
            path: self.key.clone(),
            entries,
            known: Vec::new(),
            is_open: false,
        })
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self.node.value, YamlValue::Map(_))
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.node.value, YamlValue::List(_))
    }
}

// === impl FileFields ===

impl<'n> FileFields<'n> {
    /// Returns the full key of a name in this map.
    pub(crate) fn full_key(&self, name: &str) -> String {
        match self.path.is_empty() {
            true => name.to_owned(),
            false => format!("{}.{name}", self.path),
        }
    }

    /// Takes the value of a key. `None` if the key is missing or its value is null.
    pub(crate) fn take_key(
        &mut self,
        notes: &mut ReadNotes,
        name: &'static str,
    ) -> Option<FileItem<'n>> {
        self.known.push(name);
        let go = notes.dialect == Dialect::Go;
        let is = |entry: &&YamlEntry| match go {
            true => entry.key.eq_ignore_ascii_case(name),
            false => entry.key == name,
        };
        let entries: Vec<&YamlEntry> = self.entries.iter().filter(is).collect();
        let first = entries.first()?;
        for again in &entries[1..] {
            let line = first.place.line;
            let message = format!("said again; it was said in line {line} already");
            let help = match go {
                true => "only the last one counts: remove the others",
                false => "remove one of them",
            };
            notes.complain(
                again.place,
                &self.full_key(name),
                (message, help.to_owned()),
            );
        }
        let entry = if go { entries.last()? } else { first };
        let item = FileItem {
            key: self.full_key(name),
            node: &entry.node,
        };
        // `pools:` without a value is null in YAML, e.g. because all its lines are commented out.
        // It leaves the default.
        (!matches!(entry.node.value, YamlValue::Null)).then_some(item)
    }

    /// Returns every key with its place and its value, for maps whose names the user chooses.
    pub(crate) fn items(&self) -> Vec<(&'n str, TextPlace, FileItem<'n>)> {
        let item = |entry: &'n YamlEntry| {
            let value = FileItem {
                key: self.full_key(&entry.key),
                node: &entry.node,
            };
            (entry.key.as_str(), entry.place, value)
        };
        self.entries.iter().map(item).collect()
    }

    /// Takes every key that was not taken yet, with its place and its value.
    pub(crate) fn take_rest(&mut self) -> Vec<(&'n str, TextPlace, FileItem<'n>)> {
        self.is_open = true;
        let mut items = self.items();
        items.retain(|(name, ..)| !self.known.contains(name));
        items
    }

    /// Returns the place of a key itself, or of the map if it does not have the key.
    pub(crate) fn key_place(&self, name: &str) -> TextPlace {
        let entry = self.entries.iter().find(|entry| entry.key == name);
        entry.map_or(self.place, |entry| entry.place)
    }

    /// Notes the keys that were not taken as unknown.
    pub(crate) fn note_unknown_keys(self, notes: &mut ReadNotes) {
        for entry in self.entries.iter().filter(|_| !self.is_open) {
            let known = |name: &&str| match notes.dialect {
                Dialect::Go => name.eq_ignore_ascii_case(&entry.key),
                Dialect::Native => **name == entry.key,
            };
            if self.known.iter().any(known) {
                continue;
            }
            let help = among(&entry.key, "the keys here are", &self.known);
            let message = match notes.dialect {
                Dialect::Native => "unknown key",
                Dialect::Go => "unknown key, not used",
            };
            let key = self.full_key(&entry.key);
            notes.complain(entry.place, &key, (message.to_owned(), help));
        }
    }
}
