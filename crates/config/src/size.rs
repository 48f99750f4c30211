//! Amounts of memory in the form of Kubernetes' quantities: `40Gi`, `80G`, `512Mi`, `1000000`.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::Serialize;

/// Units, binary before decimal, the largest first.
// A size is written in the first unit that divides it, so the order decides how it looks.
const UNITS: [(&str, u64); 8] = [
    ("Ti", 1 << 40),
    ("Gi", 1 << 30),
    ("Mi", 1 << 20),
    ("Ki", 1 << 10),
    ("T", 1_000_000_000_000),
    ("G", 1_000_000_000),
    ("M", 1_000_000),
    ("k", 1_000),
];

/// Number of bytes, written like a quantity of Kubernetes: `40Gi`, `80G`, `512Mi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(into = "String")]
#[schemars(with = "String")]
pub struct Size(u64);

// === impl Size ===

impl Size {
    /// Returns the number of bytes.
    ///
    /// ```
    /// let size: config::Size = "40Gi".parse()?;
    /// assert_eq!(size.bytes(), 40 << 30);
    /// # Ok::<(), String>(())
    /// ```
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("`{text}` is not an amount of memory such as 40Gi, 80G or 512Mi");
        let text = text.trim();
        let unit = UNITS.iter().find(|(unit, _)| text.ends_with(unit));
        let (number, factor) = match unit {
            Some((unit, factor)) => (&text[..text.len() - unit.len()], *factor),
            None => (text, 1),
        };
        // Kubernetes takes fractions and exponents too (k8s.io/apimachinery,
        // pkg/api/resource/quantity.go, ParseQuantity). No selector needs them.
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(factor).map(Self).ok_or_else(wrong)
    }
}

impl From<Size> for String {
    fn from(size: Size) -> Self {
        size.to_string()
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(_, factor): &&(&str, u64)| self.0 != 0 && self.0.is_multiple_of(*factor);
        match UNITS.iter().find(whole) {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / factor),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case("40Gi", 40 << 30)]
    #[case("80G", 80_000_000_000)]
    #[case("512Mi", 512 << 20)]
    #[case("0", 0)]
    #[case("1000", 1000)]
    fn reads_what_people_write(#[case] text: &str, #[case] bytes: u64) {
        let size: Size = text.parse().unwrap();
        assert_eq!(size.bytes(), bytes);
        assert_eq!(size.to_string().parse(), Ok(size));
    }

    #[rstest]
    #[case("")]
    #[case("Gi")]
    #[case("-1Gi")]
    #[case("1.5Gi")]
    #[case("40GB")]
    #[case("99999999999999Ti")]
    fn refuses_and_names_the_text(#[case] text: &str) {
        let error = text.parse::<Size>().unwrap_err();
        assert!(error.contains(&format!("`{text}`")), "{error}");
    }

    proptest! {
        #[test]
        fn every_size_is_read_back(bytes: u64) {
            let size = Size(bytes);
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }
    }
}
