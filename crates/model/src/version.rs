//! Versions, which compare as numbers.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of one to three numbers, as its source writes it: `8.0`, `580.95.05`, `1.2.3-rc.1`.
///
/// The text is kept, because `580.95.05` as numbers would become `580.95.5`. Use
/// [`Version::to_numbers`] to compare versions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Version(String);

/// Text that is not a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a version such as 8.0 or 580.95.05")]
pub struct InvalidVersion(String);

// === impl Version ===

impl Version {
    /// Creates a version of two numbers.
    pub fn of_two(major: u32, minor: u32) -> Self {
        Self(format!("{major}.{minor}"))
    }

    /// Returns the version as its source writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the three numbers, for comparison. A missing number counts as 0.
    pub fn to_numbers(&self) -> [u64; 3] {
        parse_version_numbers(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for Version {
    type Error = InvalidVersion;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match parse_version_numbers(&text) {
            Some(_) => Ok(Self(text)),
            None => Err(InvalidVersion(text)),
        }
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.0
    }
}

/// Returns the numbers before the first `-` or `+`, or `None` if the text is not a version.
fn parse_version_numbers(text: &str) -> Option<[u64; 3]> {
    let core = text.split(['-', '+']).next()?;
    let mut numbers = [0; 3];
    for (at, part) in core.split('.').enumerate() {
        // `parse` alone would accept a sign.
        let is_number = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        *numbers.get_mut(at)? = is_number.then(|| part.parse().ok()).flatten()?;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_its_text_and_compares_by_number() {
        let version = |text: &str| text.parse::<Version>().unwrap();
        assert_eq!(version("580.95.05").to_string(), "580.95.05");
        assert_eq!(version("580.95.05").to_numbers(), [580, 95, 5]);
        assert!(version("10.0").to_numbers() > version("9.2").to_numbers());
        assert_eq!(
            version("8").to_numbers(),
            version("8.0.0-rc.1+a").to_numbers()
        );
    }

    #[test]
    fn refuses_and_names_the_text() {
        for text in ["", "new", "8.", "8..0", "1.2.3.4", "v8.0", "+1", "8.x"] {
            let error = text.parse::<Version>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }
}
