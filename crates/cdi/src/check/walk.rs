//! A place in a document, and what is noted there.

use serde_json::{Map, Value};

use super::{Problem, Severity};

/// A value, where it is, and where to note what is wrong with it.
pub(super) struct At<'a> {
    value: &'a Value,
    path: String,
    problems: &'a mut Vec<Problem>,
}

/// A rule for a value.
pub(super) type Rule = fn(&mut At<'_>);

// === impl At ===

impl<'a> At<'a> {
    pub(super) fn root(value: &'a Value, problems: &'a mut Vec<Problem>) -> Self {
        Self {
            value,
            path: String::new(),
            problems,
        }
    }

    pub(super) fn value(&self) -> &'a Value {
        self.value
    }

    /// Notes an error at `name` inside of this, or here.
    pub(super) fn error(&mut self, name: &str, text: String) {
        self.note(name, text, Severity::Error);
    }

    /// Notes a warning at `name` inside of this, or here.
    pub(super) fn warning(&mut self, name: &str, text: String) {
        self.note(name, text, Severity::Warning);
    }

    fn note(&mut self, name: &str, text: String, severity: Severity) {
        self.problems.push(Problem {
            at: join(&self.path, name),
            severity,
            text,
        });
    }

    /// Takes this for a map with these keys, each with its rule; the required ones must be there.
    pub(super) fn map(&mut self, keys: &[(&str, Rule)], required: &[&str]) {
        let Some(map) = self.object() else {
            return;
        };
        for key in required {
            if !map.contains_key(*key) {
                self.error("", format!("`{key}` is missing"));
            }
        }
        for (key, value) in map {
            match keys.iter().find(|(known, _)| known == key) {
                Some((_, rule)) => rule(&mut self.inside(join(&self.path, key), value)),
                None => {
                    let names: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
                    let names = names.join(", ");
                    self.error(key, format!("unknown field; there are {names}"));
                }
            }
        }
    }

    /// Takes this for a list, and applies a rule to each item.
    pub(super) fn list(&mut self, rule: Rule) {
        let Value::Array(items) = self.value else {
            return self.mismatch("a list");
        };
        for (n, value) in items.iter().enumerate() {
            rule(&mut self.inside(format!("{}[{n}]", self.path), value));
        }
    }

    /// Takes this for a text.
    pub(super) fn text(&mut self) -> Option<&'a str> {
        let text = self.value.as_str();
        if text.is_none() {
            self.mismatch("a text");
        }
        text
    }

    /// Takes this for a whole number up to `limit`.
    pub(super) fn number(&mut self, limit: u64) {
        if self.value.as_u64().is_none_or(|number| number > limit) {
            self.mismatch(&format!("a whole number from 0 to {limit}"));
        }
    }

    /// Takes this for a map of texts.
    pub(super) fn texts(&mut self) {
        let Some(map) = self.object() else {
            return;
        };
        for (key, value) in map {
            self.inside(join(&self.path, key), value).text();
        }
    }

    fn object(&mut self) -> Option<&'a Map<String, Value>> {
        let map = self.value.as_object();
        if map.is_none() {
            self.mismatch("a map");
        }
        map
    }

    fn mismatch(&mut self, wanted: &str) {
        self.error("", format!("must be {wanted}"));
    }

    fn inside<'b>(&'b mut self, path: String, value: &'b Value) -> At<'b> {
        At {
            value,
            path,
            problems: self.problems,
        }
    }
}

fn join(path: &str, name: &str) -> String {
    match (path, name) {
        (path, "") => path.to_owned(),
        ("", name) => name.to_owned(),
        (path, name) => format!("{path}.{name}"),
    }
}
