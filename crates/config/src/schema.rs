//! The JSON schema of `ostler.yaml`, made from the types of the config.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

use crate::Config;

/// One value, or a list of them: a form for the schema alone.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema is made from it, no value ever is")]
pub(crate) enum OneOrMany<T> {
    /// One.
    One(T),
    /// Some.
    Many(Vec<T>),
}

/// An index, written as a number or a text: a form for the schema alone.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema is made from it, no value ever is")]
pub(crate) enum Index {
    /// `3`.
    Number(u32),
    /// `3:0`.
    Text(String),
}

/// A word, or a map that says more: a form for the schema alone.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema is made from it, no value ever is")]
pub(crate) enum WordOr<W, M> {
    /// The word.
    Word(W),
    /// The map.
    Map(M),
}

/// Returns the schema of `ostler.yaml`.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Config>();
    schema.insert("title".to_owned(), "ostler.yaml".into());
    let mut schema = schema.to_value();
    forget_defaults(&mut schema);
    schema
}

/// Removes the defaults of whole sections: those of their options say the same.
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
