//! Effective config for operators (`ostler config explain`): every value with its origin, under the
//! keys of `ostler.yaml`. NVIDIA's flags and file are shown under the same keys.

use serde::Serialize;
use serde_json::Value;

use crate::{Config, Resolved, ValueOrigin};

/// One effective value with its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigRow {
    /// Key in `ostler.yaml`, e.g. `pools[0].sharing.replicas`.
    pub key: String,
    /// Value as JSON; `null` where nothing is set.
    pub value: Value,
    /// Source of the value. A list or map without an origin of its own has that of its parent.
    pub origin: ValueOrigin,
}

// === impl Resolved ===

impl Resolved {
    /// Returns every value with its origin. A list is one value, except for the list of pools.
    pub fn list_values(&self) -> Vec<ConfigRow> {
        let mut rows = Vec::new();
        self.collect("", &self.config.to_value(), &mut rows);
        rows
    }

    /// Returns an `ostler.yaml` that results in the same config. Every value that is not a default
    /// has a comment with its origin.
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        self.write_section("", &self.config.to_value(), 0, &mut text);
        text
    }

    fn collect(&self, path: &str, value: &Value, rows: &mut Vec<ConfigRow>) {
        for (key, value) in list_children(path, value) {
            match list_children(&key, value).is_empty() {
                true => rows.push(ConfigRow {
                    origin: self.origins.find_origin(&key),
                    value: value.clone(),
                    key,
                }),
                false => self.collect(&key, value, rows),
            }
        }
    }

    fn write_section(&self, path: &str, value: &Value, depth: usize, text: &mut String) {
        let indent = "  ".repeat(depth);
        for (n, (key, value)) in list_children(path, value).into_iter().enumerate() {
            // Not the text after the last dot: a name, e.g. of a condition, can have dots.
            let name = key.strip_prefix(path).unwrap_or(&key);
            let name = key_text(name.strip_prefix('.').unwrap_or(name));
            // The first key of a pool is on the line of the list item's `- `.
            let in_list = path.ends_with(']') && n == 0;
            let lead = match in_list {
                true => format!("{}- ", "  ".repeat(depth.saturating_sub(1))),
                false => indent.clone(),
            };
            if key.ends_with(']') {
                self.write_section(&key, value, depth + 1, text);
            } else if list_children(&key, value).is_empty() {
                *text += &format!("{lead}{name}: {}", inline(value));
                match self.origins.find_origin(&key) {
                    ValueOrigin::Default => {}
                    origin => *text += &format!("  # {origin}"),
                }
                text.push('\n');
            } else {
                *text += &format!("{lead}{name}:\n");
                self.write_section(&key, value, depth + 1, text);
            }
        }
    }
}

// === impl ConfigRow ===

impl ConfigRow {
    /// Returns the value on one line, `-` where nothing is set.
    pub fn show_value(&self) -> String {
        match &self.value {
            Value::Null => "-".to_owned(),
            value => inline(value),
        }
    }
}

// === impl Config ===

impl Config {
    /// Returns the config as JSON, with the keys of `ostler.yaml`.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("every path of a config is a text, which is checked")
    }
}

/// Returns the values that get lines of their own: the keys of a map, and the items of the list of
/// pools.
fn list_children<'v>(path: &str, value: &'v Value) -> Vec<(String, &'v Value)> {
    match value {
        Value::Object(map) => {
            let key = |name: &String| match path.is_empty() {
                true => name.clone(),
                false => format!("{path}.{name}"),
            };
            map.iter().map(|(name, value)| (key(name), value)).collect()
        }
        // Only pools have enough keys for lines of their own; any other list is short.
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

/// Writes a key, in quotes where YAML needs them.
fn key_text(name: &str) -> String {
    // The reader takes every key as a text, so a number needs no quotes.
    let is_number = name.bytes().all(|b| b.is_ascii_digit());
    if is_number || is_plain(name) {
        name.to_owned()
    } else {
        quote(name)
    }
}

/// Writes a value on one line, so that YAML reads the same value.
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

/// Puts a text in double quotes. Escapes line breaks, control characters and invisible characters.
fn quote(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            ' '..='~' => quoted.push(c),
            c if c.is_alphanumeric() => quoted.push(c),
            // YAML 1.1 takes more characters for line breaks than YAML 1.2: U+0085, U+2028, U+2029.
            // An escape means the same in both.
            c => quoted += &format!("\\U{:08x}", u32::from(c)),
        }
    }
    quoted + "\""
}

/// Returns true if YAML reads an unquoted text as the same text, in a list too.
fn is_plain(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let start = |c: char| c.is_ascii_alphanumeric() || "/.".contains(c);
    let word = |word: &str| text.eq_ignore_ascii_case(word);
    text.starts_with(start)
        && text.chars().all(inner)
        && text.chars().any(|c| c.is_ascii_alphabetic() || c == '/')
        // `yes`, `no`, `on`, `off`, `y` and `n` are bools in YAML 1.1 alone. Other programs that
        // read this output may follow it.
        && !["null", "true", "false", "yes", "no", "on", "off", "y", "n"]
            .into_iter()
            .any(word)
}

#[cfg(test)]
mod tests;
