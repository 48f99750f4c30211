//! Deserializers that leave out a value that they cannot parse, and keep the rest of the line. A
//! newer probe or agent may write values that this version does not know.

use std::{collections::BTreeMap, str::FromStr};

use serde::{Deserialize, Deserializer, de::IgnoredAny};

use crate::AttributeName;

/// Value that can be parsed, or anything else.
///
/// ```
/// # use model::KnownOr;
/// let read = serde_json::from_str::<Vec<KnownOr<u32>>>(r#"[1, "new", 2]"#).unwrap();
/// assert!(read.into_iter().filter_map(KnownOr::into_known).eq([1, 2]));
/// ```
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum KnownOr<T> {
    /// Parsed value.
    Known(T),
    /// Value of another form, which is dropped.
    Other(IgnoredAny),
}

// === impl KnownOr ===

impl<T> KnownOr<T> {
    /// Returns the value if it was parsed.
    pub fn into_known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Other(_) => None,
        }
    }
}

/// Reads a list, without the items that cannot be parsed.
///
/// # Errors
/// The value is not a list.
pub fn known_items<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let items = Vec::<KnownOr<T>>::deserialize(deserializer)?;
    Ok(items.into_iter().filter_map(KnownOr::into_known).collect())
}

/// Reads a value from its text form. Anything that cannot be parsed counts as absent.
pub(crate) fn text<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
{
    let text = KnownOr::<String>::deserialize(deserializer)?.into_known();
    Ok(text.and_then(|text| text.parse().ok()))
}

/// Reads facts by name, without those whose name or value cannot be parsed.
pub(crate) fn facts<'de, D, T>(deserializer: D) -> Result<BTreeMap<AttributeName, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let facts = BTreeMap::<String, KnownOr<T>>::deserialize(deserializer)?;
    let known =
        |(name, value): (String, KnownOr<T>)| Some((name.try_into().ok()?, value.into_known()?));
    Ok(facts.into_iter().filter_map(known).collect())
}

/// Reads a list, without the items that cannot be parsed. Anything but a list counts as an empty
/// one.
pub(crate) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = KnownOr::<Vec<KnownOr<T>>>::deserialize(deserializer)?.into_known();
    let entries = list.into_iter().flatten();
    Ok(entries.filter_map(KnownOr::into_known).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{Device, Index, Shape, Span, Value, names};

    #[test]
    fn what_is_not_understood_costs_nothing_else() {
        let device: Device = serde_json::from_value(json!({
            "id": "GPU-1", "vendor": "nvidia", "index": "card0",
            "attributes": {"productName": "T4", "no name": 1, "half": 0.5, "list": [1], "huge": 1e30},
            "capacity": {"memory": 7, "less": -1},
        }))
        .unwrap();
        assert_eq!(device.index, None);
        assert_eq!(device.product_name(), Some("T4"));
        assert_eq!((device.attributes.len(), device.capacity.len()), (1, 1));
        assert_eq!(device.memory_bytes(), Some(7));
    }

    #[test]
    fn a_shape_that_is_not_understood_costs_that_shape() {
        let read = |shapes: serde_json::Value| -> Vec<Shape> {
            let card = json!({"id": "GPU-1", "vendor": "x", "shapes": shapes});
            serde_json::from_value::<Device>(card).unwrap().shapes
        };
        let half = Shape {
            profile: "half".to_owned(),
            most: 2,
            memory: None,
            placements: vec![Span { start: 4, size: 4 }],
        };
        let written = json!({"profile": "half", "most": 2, "placements": [{"start": 4, "size": 4}], "new": 1});
        let shapes = json!([
            {"profile": "third"}, 7, written, {"profile": 1, "most": 1},
            {"profile": "odd", "most": 1, "placements": [{"start": -1, "size": 1}]},
        ]);
        assert_eq!(read(shapes), [half]);
        assert_eq!(read(json!("none")), []);
        assert_eq!(read(json!(null)), []);
    }

    #[test]
    fn what_is_understood_is_read() {
        let device: Device = serde_json::from_value(json!({
            "id": "GPU-1", "vendor": "nvidia", "index": "3",
            "attributes": {"display": false, "cudaComputeCapability": {"version": "8.0"}},
        }))
        .unwrap();
        assert_eq!(device.index, Some(Index::of_card(3)));
        assert_eq!(device.bool_attribute(&names::DISPLAY), Some(false));
        let capability = &device.attributes["cudaComputeCapability"];
        assert!(matches!(capability, Value::Version { .. }));
    }
}
