//! Cursor in a document, which collects problems with their places.

use serde_json::{Map, Value};

use super::{Problem, Severity};

/// Value with its path and the list of problems.
pub(super) struct At<'a> {
    value: &'a Value,
    path: String,
    problems: &'a mut Vec<Problem>,
}

/// Check of one value.
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

    /// Reports an error at the key `name` of this value, or at the value itself if `name` is empty.
    pub(super) fn error(&mut self, name: &str, text: String) {
        self.note(name, text, Severity::Error);
    }

    /// Reports a warning at the key `name` of this value, or at the value itself if `name` is empty.
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

    /// Checks that this is a map with these keys only, each by its rule, and has the required ones.
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

    /// Checks that this is a list, and each item by the rule.
    pub(super) fn list(&mut self, rule: Rule) {
        let Value::Array(items) = self.value else {
            return self.mismatch("a list");
        };
        for (n, value) in items.iter().enumerate() {
            rule(&mut self.inside(format!("{}[{n}]", self.path), value));
        }
    }

    /// Checks that this is a string, and returns it.
    pub(super) fn text(&mut self) -> Option<&'a str> {
        let text = self.value.as_str();
        if text.is_none() {
            self.mismatch("a text");
        }
        text
    }

    /// Checks that this is an integer from 0 to `limit`.
    pub(super) fn number(&mut self, limit: u64) {
        if self.value.as_u64().is_none_or(|number| number > limit) {
            self.mismatch(&format!("a whole number from 0 to {limit}"));
        }
    }

    /// Checks that this is a map of strings.
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
