//! Conditions: named states of a device, for facts that only one vendor has.

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Named state of a device, such as one of AMD's RAS blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// Name, the same in every reading.
    pub name: ConditionName,
    /// State that was read.
    pub state: ConditionState,
    /// Reason for the state, for a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// True if a reload of the driver or a reboot of the node ends the condition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_with_reset: bool,
    /// Time in milliseconds for which the condition may last before it counts. A state that is
    /// normal for a moment, such as a link in training, needs it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub grace_millis: u64,
}

/// Name of a condition: at most 64 lower-case letters, digits, `-` and `.`.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = r"^[a-z0-9.-]{1,64}$"))]
pub struct ConditionName(Arc<str>);

/// Text that is not the name of a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the name of a condition: lower-case letters, digits, `-` and `.`, at most 64 of them"
)]
pub struct InvalidConditionName(String);

/// State of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConditionState {
    /// Nothing is wrong.
    Ok,
    /// The device works, but an operator should look at it.
    Warning,
    /// The device does not work as it should.
    Critical,
    /// The state could not be read.
    Unknown,
}

/// Maximum length of a name, in bytes.
const LIMIT: usize = 64;

// === impl Condition ===

impl Condition {
    /// Returns the time for which the condition may last before it counts.
    pub fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_millis)
    }
}

// === impl ConditionName ===

impl ConditionName {
    /// Returns the name, as it is in every reading.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConditionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ConditionName {
    type Err = InvalidConditionName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_letter = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
        if (1..=LIMIT).contains(&text.len()) && text.bytes().all(is_letter) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidConditionName(text.to_owned()))
        }
    }
}

impl TryFrom<String> for ConditionName {
    type Error = InvalidConditionName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ConditionName> for String {
    fn from(name: ConditionName) -> Self {
        name.0.as_ref().to_owned()
    }
}

fn is_zero(millis: &u64) -> bool {
    *millis == 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Reading;

    #[test]
    fn a_name_is_one_text_in_json() {
        for text in ["ras.umc", "0", "fan-1", &"a".repeat(64)] {
            let name: ConditionName = serde_json::from_value(json!(text)).unwrap();
            assert_eq!(serde_json::to_value(&name).unwrap(), json!(text));
            assert_eq!(name.as_str(), text);
        }
    }

    #[test]
    fn a_name_of_another_form_is_refused_and_named() {
        let long = "a".repeat(65);
        for text in ["", "RAS", "ras umc", "ras:umc", "ras_umc", "é", &long] {
            let error = text.parse::<ConditionName>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn a_condition_that_is_not_understood_costs_nothing_else() {
        let reading: Reading = serde_json::from_value(json!({
            "values": {"working": {"ecc_uncorrected": 0}},
            "conditions": [
                {"name": "ras.umc", "state": "critical", "reason": "3 errors", "since": "monday"},
                {"name": "RAS gfx", "state": "ok"},
                {"name": "ras.sdma", "state": "dreaming"},
                {"name": "ras.mmhub"},
                "ras.athub",
                {"name": "fan", "state": "ok", "ends_with_reset": true},
                {"name": "training", "state": "warning", "grace_millis": 1500},
                {"name": "pump", "state": "warning", "grace_millis": "soon"},
            ],
        }))
        .unwrap();
        let names: Vec<&str> = reading.conditions.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["ras.umc", "fan", "training"]);
        let graces: Vec<u64> = reading.conditions.iter().map(|c| c.grace_millis).collect();
        assert_eq!(graces, [0, 0, 1500]);
        let written = serde_json::to_value(&reading).unwrap();
        assert_eq!(serde_json::from_value::<Reading>(written).unwrap(), reading);
    }

    #[test]
    fn a_reading_without_conditions_says_nothing_of_them() {
        let reading: Reading = serde_json::from_value(json!({"values": {"trend": {}}})).unwrap();
        assert_eq!(reading.conditions, []);
        assert_eq!(
            serde_json::to_value(&reading).unwrap(),
            json!({"values": {"trend": {}}})
        );
    }
}
