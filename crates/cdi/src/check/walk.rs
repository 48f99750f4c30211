//! Cursor in a document, which collects problems with their places.

use serde_json::{Map, Value};

use super::{SpecProblem, SpecSeverity};

/// Value with its path and the list of problems.
pub(super) struct SpecCursor<'a> {
    value: &'a Value,
    path: String,
    problems: &'a mut Vec<SpecProblem>,
}

/// Check of one value.
pub(super) type SpecRule = fn(&mut SpecCursor<'_>);

// === impl SpecCursor ===

impl<'a> SpecCursor<'a> {
    pub(super) fn at_root(value: &'a Value, problems: &'a mut Vec<SpecProblem>) -> Self {
        Self {
            value,
            path: String::new(),
            problems,
        }
    }

    pub(super) fn current_value(&self) -> &'a Value {
        self.value
    }

    /// Reports an error at the key `name` of this value, or at the value itself if `name` is empty.
    pub(super) fn report_error(&mut self, name: &str, text: String) {
        self.add_problem(name, text, SpecSeverity::Error);
    }

    /// Reports a warning at the key `name` of this value, or at the value itself if `name` is empty.
    pub(super) fn report_warning(&mut self, name: &str, text: String) {
        self.add_problem(name, text, SpecSeverity::Warning);
    }

    fn add_problem(&mut self, name: &str, text: String, severity: SpecSeverity) {
        self.problems.push(SpecProblem {
            at: join_place(&self.path, name),
            severity,
            text,
        });
    }

    /// Checks that this is a map with these keys only, each by its rule, and has the required ones.
    pub(super) fn expect_map(&mut self, keys: &[(&str, SpecRule)], required: &[&str]) {
        let Some(map) = self.object() else {
            return;
        };
        for key in required {
            if !map.contains_key(*key) {
                self.report_error("", format!("`{key}` is missing"));
            }
        }
        for (key, value) in map {
            match keys.iter().find(|(known, _)| known == key) {
                Some((_, rule)) => rule(&mut self.child_cursor(join_place(&self.path, key), value)),
                None => {
                    let names: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
                    let names = names.join(", ");
                    self.report_error(key, format!("unknown field; there are {names}"));
                }
            }
        }
    }

    /// Checks that this is a list, and each item by the rule.
    pub(super) fn expect_list(&mut self, rule: SpecRule) {
        let Value::Array(items) = self.value else {
            return self.mismatch("a list");
        };
        for (n, value) in items.iter().enumerate() {
            rule(&mut self.child_cursor(format!("{}[{n}]", self.path), value));
        }
    }

    /// Checks that this is a string, and returns it.
    pub(super) fn expect_text(&mut self) -> Option<&'a str> {
        let text = self.value.as_str();
        if text.is_none() {
            self.mismatch("a text");
        }
        text
    }

    /// Checks that this is an integer from 0 to `limit`.
    pub(super) fn expect_number(&mut self, limit: u64) {
        if self.value.as_u64().is_none_or(|number| number > limit) {
            self.mismatch(&format!("a whole number from 0 to {limit}"));
        }
    }

    /// Checks that this is a map of strings.
    pub(super) fn expect_text_map(&mut self) {
        let Some(map) = self.object() else {
            return;
        };
        for (key, value) in map {
            self.child_cursor(join_place(&self.path, key), value)
                .expect_text();
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
        self.report_error("", format!("must be {wanted}"));
    }

    fn child_cursor<'b>(&'b mut self, path: String, value: &'b Value) -> SpecCursor<'b> {
        SpecCursor {
            value,
            path,
            problems: self.problems,
        }
    }
}

fn join_place(path: &str, name: &str) -> String {
    match (path, name) {
        (path, "") => path.to_owned(),
        ("", name) => name.to_owned(),
        (path, name) => format!("{path}.{name}"),
    }
}
