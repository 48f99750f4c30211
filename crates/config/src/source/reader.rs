//! Walks through a tree, key by key, and notes every problem.

use std::{collections::BTreeMap, fmt::Display, ops::RangeInclusive, path::PathBuf, str::FromStr};

use super::{Entry, Node, Place, Said, Source, Value, Word, among, tree, word};
use crate::{Origins, Problem, Severity};

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
pub(crate) struct Notes {
    pub(crate) source: Source,
    pub(crate) dialect: Dialect,
    pub(crate) problems: Vec<Problem>,
    /// Places of the values that were taken, by full key.
    places: BTreeMap<String, Place>,
}

/// Value with its full key.
#[derive(Clone, Debug)]
pub(crate) struct Item<'n> {
    pub(crate) key: String,
    pub(crate) node: &'n Node,
}

/// Keys of a map, taken one by one. Those that are left at the end are unknown.
#[derive(Debug)]
pub(crate) struct Fields<'n> {
    pub(crate) place: Place,
    path: String,
    entries: &'n [Entry],
    known: Vec<&'static str>,
    /// True if the user chooses the names of the other keys: none is unknown.
    is_open: bool,
}

// === impl Notes ===

impl Notes {
    pub(crate) fn new(source: Source, dialect: Dialect) -> Self {
        Self {
            source,
            dialect,
            problems: Vec::new(),
            places: BTreeMap::new(),
        }
    }

    /// Parses the text into a tree. `None` if the text is empty, or broken, with an error noted.
    pub(crate) fn tree(&mut self) -> Option<Node> {
        match tree::parse(self.source.clone().text()) {
            Ok(tree) => tree,
            Err(fault) => {
                self.error(fault.place, "", fault.message, fault.help);
                None
            }
        }
    }

    pub(crate) fn error(
        &mut self,
        place: Place,
        key: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.note(Severity::Error, place, key, (message.into(), help.into()));
    }

    pub(crate) fn warn(
        &mut self,
        place: Place,
        key: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.note(Severity::Warning, place, key, (message.into(), help.into()));
    }

    /// Notes an error in our own dialect, a warning in NVIDIA's.
    fn complain(&mut self, place: Place, key: &str, words: (String, String)) {
        let severity = match self.dialect {
            Dialect::Native => Severity::Error,
            Dialect::Go => Severity::Warning,
        };
        self.note(severity, place, key, words);
    }

    fn note(&mut self, severity: Severity, place: Place, key: &str, words: (String, String)) {
        self.problems.push(Problem {
            severity,
            at: self.source.origin(place),
            key: key.to_owned(),
            message: words.0,
            help: words.1,
            snippet: self.source.snippet(place),
        });
    }

    /// Keeps the place of a value that was taken.
    pub(crate) fn keep(&mut self, key: String, place: Place) {
        self.places.insert(key, place);
    }

    /// Returns the place of a value that was taken.
    pub(crate) fn place(&self, key: &str) -> Option<Place> {
        self.places.get(key).copied()
    }

    /// Returns the origin of every value that was taken.
    pub(crate) fn origins(&self) -> Origins {
        let origin = |(key, place): (&String, &Place)| (key.clone(), self.source.origin(*place));
        self.places.iter().map(origin).collect()
    }

    /// Returns true if the file cannot be used.
    pub(crate) fn failed(&self) -> bool {
        self.problems.iter().any(Problem::is_error)
    }
}

// === impl Item ===

impl<'n> Item<'n> {
    /// Makes the item of the whole file, with an empty key.
    pub(crate) fn root(node: &'n Node) -> Self {
        Self {
            key: String::new(),
            node,
        }
    }

    pub(crate) fn place(&self) -> Place {
        self.node.place
    }

    pub(crate) fn said<T>(&self, value: T) -> Said<T> {
        Said {
            value,
            place: self.node.place,
        }
    }

    pub(crate) fn error(
        &self,
        notes: &mut Notes,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        notes.error(self.node.place, &self.key, message, help);
    }

    /// Returns a single value as a text, and true if it is plain, i.e. not in quotes.
    pub(crate) fn scalar(&self) -> Option<(&'n str, bool)> {
        match &self.node.value {
            Value::Scalar { text, plain } => Some((text, *plain)),
            _ => None,
        }
    }

    fn wrong(&self, notes: &mut Notes, expected: &str, help: &str) {
        let found = match &self.node.value {
            Value::Null => "nothing".to_owned(),
            Value::Scalar { text, .. } => format!("`{text}`"),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
        };
        self.error(notes, format!("expected {expected}, found {found}"), help);
    }

    pub(crate) fn text(&self, notes: &mut Notes) -> Option<Said<String>> {
        let Some((text, _)) = self.scalar() else {
            self.wrong(notes, "a text", "write one value");
            return None;
        };
        Some(self.said(text.to_owned()))
    }

    pub(crate) fn path(&self, notes: &mut Notes) -> Option<Said<PathBuf>> {
        let text = self.text(notes)?;
        if text.value.is_empty() {
            let help = "name a file or folder, or leave the key out";
            self.error(notes, "the path is empty", help);
            return None;
        }
        Some(text.map(PathBuf::from))
    }

    /// Reads a value that is written as a text. `help` is the remedy for an invalid text.
    pub(crate) fn parsed<T>(&self, notes: &mut Notes, help: &str) -> Option<Said<T>>
    where
        T: FromStr<Err: Display>,
    {
        let text = self.text(notes)?;
        match text.value.parse() {
            Ok(value) => Some(self.said(value)),
            Err(error) => {
                self.error(notes, error.to_string(), help);
                None
            }
        }
    }

    pub(crate) fn boolean(&self, notes: &mut Notes) -> Option<Said<bool>> {
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
            self.wrong(
                notes,
                "true or false",
                "write true or false, without quotes",
            );
        }
        value.map(|value| self.said(value))
    }

    pub(crate) fn number(
        &self,
        notes: &mut Notes,
        range: RangeInclusive<u32>,
    ) -> Option<Said<u32>> {
        let number = match self.scalar() {
            Some((text, true)) => text.parse::<u32>().ok(),
            _ => None,
        };
        let (least, most) = (range.start(), range.end());
        let help = format!("write a whole number from {least} to {most}");
        match number {
            Some(number) if range.contains(&number) => Some(self.said(number)),
            Some(number) => {
                self.error(notes, format!("{number} is out of range"), help);
                None
            }
            None => {
                self.wrong(notes, "a whole number", &help);
                None
            }
        }
    }

    /// Reads one of a few words.
    pub(crate) fn choice<T: Word>(&self, notes: &mut Notes) -> Option<Said<T>> {
        match word(&self.text(notes)?.value) {
            Ok(value) => Some(self.said(value)),
            Err((message, help)) => {
                self.error(notes, message, help);
                None
            }
        }
    }

    /// Returns the items of a list.
    pub(crate) fn list(&self, notes: &mut Notes) -> Option<Vec<Item<'n>>> {
        let Value::List(list) = &self.node.value else {
            self.wrong(
                notes,
                "a list",
                "write `[…]`, or lines that begin with `- `",
            );
            return None;
        };
        Some(self.numbered(list))
    }

    /// Returns the items of a list. A single value is a list of one.
    pub(crate) fn one_or_many(&self) -> Vec<Item<'n>> {
        match &self.node.value {
            Value::List(list) => self.numbered(list),
            _ => vec![self.clone()],
        }
    }

    fn numbered(&self, list: &'n [Node]) -> Vec<Item<'n>> {
        let item = |(n, node)| Item {
            key: format!("{}[{n}]", self.key),
            node,
        };
        list.iter().enumerate().map(item).collect()
    }

    /// Returns the keys of a map.
    pub(crate) fn fields(&self, notes: &mut Notes) -> Option<Fields<'n>> {
        let Value::Map(entries) = &self.node.value else {
            self.wrong(notes, "a map", "write lines of `key: value`");
            return None;
        };
        Some(Fields {
            place: self.node.place,
            path: self.key.clone(),
            entries,
            known: Vec::new(),
            is_open: false,
        })
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self.node.value, Value::Map(_))
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.node.value, Value::List(_))
    }
}

// === impl Fields ===

impl<'n> Fields<'n> {
    /// Returns the full key of a name in this map.
    pub(crate) fn key(&self, name: &str) -> String {
        match self.path.is_empty() {
            true => name.to_owned(),
            false => format!("{}.{name}", self.path),
        }
    }

    /// Takes the value of a key. `None` if the key is missing or its value is null.
    pub(crate) fn take(&mut self, notes: &mut Notes, name: &'static str) -> Option<Item<'n>> {
        self.known.push(name);
        let go = notes.dialect == Dialect::Go;
        let is = |entry: &&Entry| match go {
            true => entry.key.eq_ignore_ascii_case(name),
            false => entry.key == name,
        };
        let entries: Vec<&Entry> = self.entries.iter().filter(is).collect();
        let first = entries.first()?;
        for again in &entries[1..] {
            let line = first.place.line;
            let message = format!("said again; it was said in line {line} already");
            let help = match go {
                true => "only the last one counts: remove the others",
                false => "remove one of them",
            };
            notes.complain(again.place, &self.key(name), (message, help.to_owned()));
        }
        let entry = if go { entries.last()? } else { first };
        let item = Item {
            key: self.key(name),
            node: &entry.node,
        };
        // `pools:` without a value is null in YAML, e.g. because all its lines are commented out.
        // It leaves the default.
        (!matches!(entry.node.value, Value::Null)).then_some(item)
    }

    /// Returns every key with its place and its value, for maps whose names the user chooses.
    pub(crate) fn items(&self) -> Vec<(&'n str, Place, Item<'n>)> {
        let item = |entry: &'n Entry| {
            let value = Item {
                key: self.key(&entry.key),
                node: &entry.node,
            };
            (entry.key.as_str(), entry.place, value)
        };
        self.entries.iter().map(item).collect()
    }

    /// Takes every key that was not taken yet, with its place and its value.
    pub(crate) fn rest(&mut self) -> Vec<(&'n str, Place, Item<'n>)> {
        self.is_open = true;
        let mut items = self.items();
        items.retain(|(name, ..)| !self.known.contains(name));
        items
    }

    /// Returns the place of a key itself, or of the map if it does not have the key.
    pub(crate) fn key_place(&self, name: &str) -> Place {
        let entry = self.entries.iter().find(|entry| entry.key == name);
        entry.map_or(self.place, |entry| entry.place)
    }

    /// Notes the keys that were not taken as unknown.
    pub(crate) fn finish(self, notes: &mut Notes) {
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
            let key = self.key(&entry.key);
            notes.complain(entry.place, &key, (message.to_owned(), help));
        }
    }
}
