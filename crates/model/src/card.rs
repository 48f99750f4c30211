//! Names of cards that need no answer from the driver: the PCI address or the index.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Device, PciAddress};

/// Card, named by its PCI address, or by the driver's index on a machine without a PCI bus.
///
/// A plain text in JSON and on command lines: `0000:07:00.0` or `3`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum CardRef {
    /// PCI address of the card.
    Pci(PciAddress),
    /// Index of the card, given by the driver.
    Index(u32),
}

/// Text that names no card.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a PCI address such as 0000:07:00.0 nor an index such as 3")]
pub struct InvalidCardRef(String);

// === impl CardRef ===

impl CardRef {
    /// Returns true if `device` is the card or one of its partitions.
    pub fn covers(&self, device: &Device) -> bool {
        match self {
            Self::Pci(address) => device.pci.as_ref() == Some(address),
            Self::Index(number) => device.index.is_some_and(|index| index.card == *number),
        }
    }
}

impl fmt::Display for CardRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pci(address) => address.fmt(f),
            Self::Index(index) => index.fmt(f),
        }
    }
}

impl FromStr for CardRef {
    type Err = InvalidCardRef;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A PCI address has colons and never reads as a number.
        let index = text.parse().map(Self::Index);
        index
            .or_else(|_| text.parse().map(Self::Pci))
            .map_err(|_| InvalidCardRef(text.to_owned()))
    }
}

impl TryFrom<String> for CardRef {
    type Error = InvalidCardRef;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<CardRef> for String {
    fn from(card: CardRef) -> Self {
        card.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_one_text_in_json() {
        for text in ["\"0000:07:00.0\"", "\"3\""] {
            let card: CardRef = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&card).unwrap(), text);
        }
    }

    #[test]
    fn refuses_and_names_the_text() {
        for text in ["", "3:0", "-1", "07:00.0", "GPU-1"] {
            let error = text.parse::<CardRef>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn a_stuck_call_outlives_a_card_that_is_none() {
        let call = |card: &str| {
            let line =
                format!(r#"{{"call":"read","device":{card},"since":"2026-03-01T10:15:00Z"}}"#);
            let call: crate::StuckCall = serde_json::from_str(&line).unwrap();
            call.device
        };
        assert_eq!(call(r#""3""#), Some(CardRef::Index(3)));
        assert_eq!(call(r#""rubbish""#), None);
    }

    #[test]
    fn covers_a_card_and_its_parts() {
        let mut device = Device::card_of("example", "a", "Example");
        device.pci = "0000:07:00.0".parse().ok();
        device.index = "3:0".parse().ok();
        let covers = |text: &str| text.parse::<CardRef>().unwrap().covers(&device);
        assert!(covers("0000:07:00.0") && covers("3"));
        assert!(!covers("0000:08:00.0") && !covers("0"));
    }
}
