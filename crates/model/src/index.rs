//! Indices: the driver's own numbers of cards and partitions.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Enumeration index of the driver: `3` for a card, `3:0` for a partition of the card. Not stable
/// across reboots. A card sorts before its partitions.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Index {
    /// Number of the card.
    pub card: u32,
    /// Number of the partition on its card; absent for a card.
    pub part: Option<u32>,
}

/// Text that is not an index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an index such as 3 or 3:0")]
pub struct InvalidIndex(String);

// === impl Index ===

impl Index {
    /// Creates the index of a whole card.
    pub fn of_card(card: u32) -> Self {
        Self { card, part: None }
    }

    /// Creates the index of a partition of this card.
    ///
    /// ```
    /// let index = model::Index::of_card(3).with_part(0);
    /// assert_eq!(index.to_string(), "3:0");
    /// assert_eq!("3:0".parse(), Ok(index));
    /// ```
    pub fn with_part(self, with_part: u32) -> Self {
        let part = Some(with_part);
        Self { part, ..self }
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            Some(part) => write!(f, "{}:{part}", self.card),
            None => self.card.fmt(f),
        }
    }
}

impl FromStr for Index {
    type Err = InvalidIndex;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = |_| InvalidIndex(text.to_owned());
        let (card, part) = match text.split_once(':') {
            Some((card, part)) => (card, Some(part.parse().map_err(invalid)?)),
            None => (text, None),
        };
        let card = card.parse().map_err(invalid)?;
        Ok(Self { card, part })
    }
}

impl TryFrom<String> for Index {
    type Error = InvalidIndex;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Index> for String {
    fn from(index: Index) -> Self {
        index.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_one_text_in_json() {
        for text in ["\"3\"", "\"3:0\""] {
            let index: Index = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&index).unwrap(), text);
        }
    }

    #[test]
    fn refuses_and_names_the_text() {
        for text in ["", "all", "3:", ":0", "-1", "3:0:1", "3.0"] {
            let error = text.parse::<Index>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn sorts_by_number_and_a_card_before_its_parts() {
        let mut all = ["10", "2:10", "2:9", "2", "3"].map(|text| text.parse::<Index>().unwrap());
        all.sort();
        assert_eq!(
            all.map(|index| index.to_string()),
            ["2", "2:9", "2:10", "3", "10"]
        );
    }
}
