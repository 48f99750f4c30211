//! Events that a driver announces without being asked.

use std::{borrow::Cow, cmp::Ordering, fmt, str::FromStr};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::DeviceId;

/// Event of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Device of the event; its card if the driver does not tell the partition.
    pub device: DeviceId,
    /// Time at which the probe received the event.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Class and number, or class and word.
    pub code: EventCode,
}

/// Code of an event: a class, a colon, and a number or a word, as in `xid:79` or `ecc:uncorrected`.
/// At most 64 characters.
///
/// Codes sort by class, then by number: `xid:79` comes before `xid:119`.
///
/// ```
/// let code: model::EventCode = "xid:79".parse().unwrap();
/// assert_eq!((code.code_class(), code.code_number()), ("xid", Some(79)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct EventCode(Cow<'static, str>);

/// Text that is not the code of an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the code of an event such as ecc:uncorrected")]
pub struct InvalidEventCode(String);

/// Highest length of a code.
const LIMIT: usize = 64;

// === impl EventCode ===

impl EventCode {
    /// Memory error that the hardware corrected.
    pub const ECC_CORRECTED: Self = Self(Cow::Borrowed("ecc:corrected"));
    /// Memory error that the hardware could not correct.
    pub const ECC_UNCORRECTED: Self = Self(Cow::Borrowed("ecc:uncorrected"));

    /// Returns the code with its class.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the class: the part before the colon.
    pub fn code_class(&self) -> &str {
        self.split_code().0
    }

    /// Returns the number after the colon, or `None` if there is a word.
    pub fn code_number(&self) -> Option<u64> {
        self.split_code().1.parse().ok()
    }

    fn split_code(&self) -> (&str, &str) {
        self.0.split_once(':').unwrap_or((&self.0, ""))
    }
}

impl PartialOrd for EventCode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EventCode {
    fn cmp(&self, other: &Self) -> Ordering {
        // Numbers compare as numbers: as texts `xid:119` would come before `xid:79`.
        let class = self.code_class().cmp(other.code_class());
        class
            .then_with(|| self.code_number().cmp(&other.code_number()))
            .then_with(|| self.0.cmp(&other.0))
    }
}

impl fmt::Display for EventCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for EventCode {
    type Err = InvalidEventCode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for EventCode {
    type Error = InvalidEventCode;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_code = text.len() <= LIMIT
            && text
                .split_once(':')
                .is_some_and(|(class, what)| is_word(class) && is_word(what));
        if is_code {
            Ok(Self(Cow::Owned(text)))
        } else {
            Err(InvalidEventCode(text))
        }
    }
}

impl From<EventCode> for String {
    fn from(code: EventCode) -> Self {
        code.0.into_owned()
    }
}

impl From<(&'static str, u64)> for EventCode {
    /// Creates the code of a numbered event. The class must be a valid word.
    fn from((class, number): (&'static str, u64)) -> Self {
        Self(Cow::Owned(format!("{class}:{number}")))
    }
}

fn is_word(text: &str) -> bool {
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    !text.is_empty() && text.bytes().all(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_one_text_in_json() {
        for text in ["\"xid:79\"", "\"ecc:uncorrected\"", "\"ras:umc.0\""] {
            let code: EventCode = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&code).unwrap(), text);
        }
        let known = [EventCode::ECC_CORRECTED, EventCode::ECC_UNCORRECTED];
        for code in known {
            assert_eq!(code.as_str().parse(), Ok(code));
        }
    }

    #[test]
    fn refuses_and_names_the_text() {
        let long = format!("xid:{}", "9".repeat(61));
        for text in ["", "79", "xid", "xid:", ":79", "xid:7 9", "a:b:c", &long] {
            let error = text.parse::<EventCode>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn sorts_by_class_and_number() {
        let mut codes = ["xid:119", "xid:79", "ecc:corrected", "xid:x"].map(|text| {
            let code: EventCode = text.parse().unwrap();
            code
        });
        codes.sort();
        let texts = codes.map(String::from);
        assert_eq!(texts, ["ecc:corrected", "xid:x", "xid:79", "xid:119"]);
    }
}
