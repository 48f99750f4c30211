//! JSON schema of `ostler.yaml`, made from the types of the config.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

use crate::Config;

/// One value, or a list of values.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema is made from it, no value ever is")]
pub(crate) enum OneOrMany<T> {
    /// One value.
    One(T),
    /// List of values.
    Many(Vec<T>),
}

/// Index, written as a number or a text.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema is made from it, no value ever is")]
pub(crate) enum Index {
    /// Number, e.g. `3`.
    Number(u32),
    /// Text, e.g. `3:0`.
    Text(String),
}

/// Word, or a map with more keys.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema is made from it, no value ever is")]
pub(crate) enum WordOr<W, M> {
    /// Short form: one word.
    Word(W),
    /// Long form: a map.
    Map(M),
}

/// Returns the JSON schema of `ostler.yaml`, in draft 2020-12.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Config>();
    schema.insert("title".to_owned(), "ostler.yaml".into());
    let mut schema = schema.to_value();
    forget_defaults(&mut schema);
    schema
}

/// Removes the defaults of whole sections, which repeat the defaults of their options.
fn forget_defaults(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let has_maps = |list: &Vec<Value>| list.iter().any(Value::is_object);
            let section = |value: &Value| {
                value.as_object().is_some_and(|map| !map.is_empty())
                    || value.as_array().is_some_and(has_maps)
            };
            if map.get("default").is_some_and(section) {
                map.remove("default");
            }
            map.values_mut().for_each(forget_defaults);
        }
        Value::Array(list) => list.iter_mut().for_each(forget_defaults),
        _ => {}
    }
}
