//! The effective config for people: every value and where it came from, in the shape of
//! `ostler.yaml`, whichever way the agent was started.

use serde::Serialize;
use serde_json::Value;

use crate::{Config, Origin, Resolved};

/// One effective value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its key in `ostler.yaml`.
    pub key: String,
    /// The value.
    pub value: Value,
    /// Its origin.
    pub origin: Origin,
}

// === impl Resolved ===

impl Resolved {
    /// Every value and where it came from.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        self.collect("", &self.config.to_value(), &mut rows);
        rows
    }

    /// The config as an `ostler.yaml` that says the same, with a comment for each value that is
    /// not a default.
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        self.write("", &self.config.to_value(), 0, &mut text);
        text
    }

    fn collect(&self, path: &str, value: &Value, rows: &mut Vec<Row>) {
        for (key, value) in children(path, value) {
            match children(&key, value).is_empty() {
                true => rows.push(Row {
                    origin: self.origins.of(&key),
                    value: value.clone(),
                    key,
                }),
                false => self.collect(&key, value, rows),
            }
        }
    }

    fn write(&self, path: &str, value: &Value, depth: usize, text: &mut String) {
        let indent = "  ".repeat(depth);
        for (n, (key, value)) in children(path, value).into_iter().enumerate() {
            // A name can have dots.
            let name = key.strip_prefix(path).unwrap_or(&key);
            let name = key_text(name.strip_prefix('.').unwrap_or(name));
            let in_list = path.ends_with(']') && n == 0;
            let lead = match in_list {
                true => format!("{}- ", "  ".repeat(depth.saturating_sub(1))),
                false => indent.clone(),
            };
            if key.ends_with(']') {
                self.write(&key, value, depth + 1, text);
            } else if children(&key, value).is_empty() {
                *text += &format!("{lead}{name}: {}", inline(value));
                match self.origins.of(&key) {
                    Origin::Default => {}
                    origin => *text += &format!("  # {origin}"),
                }
                text.push('\n');
            } else {
                *text += &format!("{lead}{name}:\n");
                self.write(&key, value, depth + 1, text);
            }
        }
    }
}

// === impl Row ===

impl Row {
    /// The value in one line.
    pub fn text(&self) -> String {
        match &self.value {
            Value::Null => "-".to_owned(),
            value => inline(value),
        }
    }
}

// === impl Config ===

impl Config {
    /// The config in the shape of `ostler.yaml`.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("every path of a config is a text, which is checked")
    }
}

/// Values that are shown on lines of their own: the keys of a map, the pools of the list of pools.
fn children<'v>(path: &str, value: &'v Value) -> Vec<(String, &'v Value)> {
    match value {
        Value::Object(map) => {
            let key = |name: &String| match path.is_empty() {
                true => name.clone(),
                false => format!("{path}.{name}"),
            };
            map.iter().map(|(name, value)| (key(name), value)).collect()
        }
        Value::Array(list) if path == "pools" => {
            let key = |n| format!("{path}[{n}]");
            list.iter()
                .enumerate()
                .map(|(n, value)| (key(n), value))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// A key as YAML reads it.
fn key_text(name: &str) -> String {
    let is_number = name.bytes().all(|b| b.is_ascii_digit());
    if is_number || is_plain(name) {
        name.to_owned()
    } else {
        quote(name)
    }
}

/// A value in one line that YAML reads as the same.
fn inline(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::String(text) => quote(text),
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let item = |(key, value)| format!("{key}: {}", inline(value));
            let items: Vec<String> = map.iter().map(item).collect();
            format!("{{{}}}", items.join(", "))
        }
        value => value.to_string(),
    }
}

/// A text in quotes; what might be taken for a line break or is not seen is escaped.
fn quote(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            ' '..='~' => quoted.push(c),
            c if c.is_alphanumeric() => quoted.push(c),
            c => quoted += &format!("\\U{:08x}", u32::from(c)),
        }
    }
    quoted + "\""
}

/// Returns true if YAML reads a text as itself without quotes, in a list too.
fn is_plain(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let start = |c: char| c.is_ascii_alphanumeric() || "/.".contains(c);
    let word = |word: &str| text.eq_ignore_ascii_case(word);
    text.starts_with(start)
        && text.chars().all(inner)
        && text.chars().any(|c| c.is_ascii_alphabetic() || c == '/')
        && !["null", "true", "false", "yes", "no", "on", "off", "y", "n"]
            .into_iter()
            .any(word)
}

#[cfg(test)]
mod tests;
