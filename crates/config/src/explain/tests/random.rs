//! Random configs, made from the schema, so that they have every option of every section.

use serde_json::{Map, Value, json};

/// Texts that need quotes in YAML, and texts that have a meaning for other options.
const TEXTS: [&str; 8] = ["/a", "/b/c d", "x", "true", "1", "é\"\\", "# no", "off"];

/// Random numbers in a given order, so that a failure can be repeated; zeros after the last one.
pub(super) struct Dice(std::vec::IntoIter<u32>);

/// Generator of values that fit a schema.
pub(super) struct Maker<'s> {
    schema: &'s Value,
    dice: Dice,
}

// === impl Dice ===

impl Dice {
    pub(super) fn new(rolls: Vec<u32>) -> Self {
        Self(rolls.into_iter())
    }

    fn roll(&mut self, sides: u64) -> u64 {
        u64::from(self.0.next().unwrap_or(0)) % sides.max(1)
    }

    fn pick<'t, T: ?Sized>(&mut self, among: &[&'t T]) -> &'t T {
        let at = self.roll(among.len() as u64);
        among[usize::try_from(at).unwrap()]
    }
}

// === impl Maker ===

impl<'s> Maker<'s> {
    pub(super) fn new(schema: &'s Value, dice: Dice) -> Self {
        Self { schema, dice }
    }

    /// Makes a config that sets about two of three options.
    pub(super) fn config(&mut self) -> Value {
        self.value("", self.schema)
    }

    fn value(&mut self, key: &str, schema: &'s Value) -> Value {
        if let Some(target) = schema["$ref"].as_str() {
            let name = target.rsplit('/').next().unwrap();
            let known = self.text_of(name).map(Value::from);
            return known.unwrap_or_else(|| self.value(key, &self.schema["$defs"][name]));
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        for choice in ["anyOf", "oneOf", "enum"] {
            if let Some(all) = schema[choice].as_array() {
                let all: Vec<&Value> = all.iter().collect();
                let one = self.dice.pick(&all);
                return match choice {
                    "enum" => one.clone(),
                    _ => self.value(key, one),
                };
            }
        }
        let kind = schema["type"].as_str();
        match kind.or(schema["type"][0].as_str()) {
            Some("boolean") => json!(self.dice.roll(2) == 1),
            Some("integer") => {
                let least = schema["minimum"].as_u64().unwrap_or(0);
                let most = schema["maximum"].as_u64().unwrap_or(u64::from(u32::MAX));
                json!(least + self.dice.roll((most - least).saturating_add(1)))
            }
            Some("array") => {
                let many = self.dice.roll(4);
                let item = |_| self.value(key, &schema["items"]);
                (0..many).map(item).collect()
            }
            Some("object") => self.map(schema),
            Some("string") => json!(self.text(key)),
            _ => Value::Null,
        }
    }

    fn map(&mut self, schema: &'s Value) -> Value {
        let mut map = Map::new();
        let required = schema["required"].as_array();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let must = required.is_some_and(|all| all.contains(&json!(name)));
            if must || self.dice.roll(3) > 0 {
                map.insert(name.clone(), self.value(name, property));
            }
        }
        if let Some(inner) = schema.get("additionalProperties").filter(|v| v.is_object()) {
            let names = schema["propertyNames"]["enum"].as_array();
            let names: Vec<&str> = match names {
                Some(names) => names.iter().filter_map(Value::as_str).collect(),
                None => vec!["13", "79", "94"],
            };
            for _ in 0..self.dice.roll(3) {
                let name = self.dice.pick(&names).to_owned();
                map.insert(name, self.value("", inner));
            }
        }
        for inner in schema["patternProperties"]
            .as_object()
            .into_iter()
            .flatten()
        {
            let name = self.dice.pick(&["ras.umc", "-", "...", "1.5", "off", "94"]);
            map.insert(name.to_owned(), self.value("", inner.1));
        }
        Value::Object(map)
    }

    /// Returns a value for a type that is written as a text of a certain form.
    fn text_of(&mut self, name: &str) -> Option<&'static str> {
        let texts: &[&str] = match name {
            "Period" => &["1ms", "250ms", "10s", "90s", "24h"],
            "PeriodOrOff" => &["off", "1s", "1h 30m"],
            "PathOrOff" => &["off", "/state"],
            "Size" => &["0", "1", "512Mi", "40Gi", "80G"],
            "NodePattern" => &["/dev/x*", "/dev/a/b"],
            "ValueTemplate" => &["/a/{id}", "/b"],
            "Template" => &["a.io/b", "a.io/{model}", "nvidia.com/mig-{profile}"],
            _ => return None,
        };
        Some(self.dice.pick(texts))
    }

    fn text(&mut self, key: &str) -> &'static str {
        match key {
            "annotationPrefix" => self.dice.pick(&["cdi.k8s.io/", "a.io/x"]),
            "pci" => self.dice.pick(&["0000:3b:00.0", "*:3b:*"]),
            "index" => self.dice.pick(&["3", "3:0", "*"]),
            "devRoot" | "mpsRoot" => self.dice.pick(&["/", "/run/nvidia"]),
            _ => self.dice.pick(&TEXTS),
        }
    }
}

/// Removes the value at the key of an error, or the map or list around it. Returns false if all of
/// them are gone already.
pub(super) fn remove(value: &mut Value, key: &str) -> bool {
    let path = format!("/{}", key.replace(['.', '['], "/").replace(']', ""));
    let mut path = path.as_str();
    while let Some((parent, last)) = path.rsplit_once('/') {
        let removed = match value.pointer_mut(parent) {
            Some(Value::Object(map)) => map.remove(last).is_some(),
            Some(Value::Array(list)) => match last.parse::<usize>() {
                Ok(n) if n < list.len() => {
                    list.remove(n);
                    true
                }
                _ => false,
            },
            _ => false,
        };
        if removed {
            return true;
        }
        path = parent;
    }
    false
}
