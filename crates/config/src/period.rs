//! Lengths of time with a unit: `10s`, `500ms`, `5m`.

use std::{fmt, str::FromStr, time::Duration};

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::source::{FileItem, ReadNotes, parsed_text};

/// Shortest time that an option takes.
const LEAST: Duration = Duration::from_millis(1);
/// Longest time that an option takes.
const MOST: Duration = Duration::from_hours(24);

/// Length of time between `1ms` and `24h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(into = "String")]
#[schemars(with = "String")]
pub struct Period(Duration);

/// Length of time between `1ms` and `24h`, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String")]
pub struct PeriodOrOff(pub Option<Duration>);

// === impl PeriodOrOff ===

impl FromStr for PeriodOrOff {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim() {
            "off" => Ok(Self(None)),
            text => text
                .parse()
                .map(|period: Period| Self(Some(period.as_duration()))),
        }
    }
}

impl PeriodOrOff {
    /// Reads a length of time, or `off`.
    pub(crate) fn read_period_or_off(
        item: &FileItem<'_>,
        notes: &mut ReadNotes,
    ) -> Option<Option<Duration>> {
        let help = "write a number and a unit, e.g. 60s, 5m, or off";
        parsed_text(help)(item, notes).map(|Self(length)| length)
    }

    /// Serializes a length of time, or `off`; for `#[serde(with = "PeriodOrOff")]`.
    pub(crate) fn serialize<S: Serializer>(
        length: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Self(*length))
    }
}

impl fmt::Display for PeriodOrOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(length) => Period::from(length).fmt(f),
            None => f.write_str("off"),
        }
    }
}

// === impl Period ===

impl Period {
    /// Returns the length.
    pub fn as_duration(self) -> Duration {
        self.0
    }

    /// Serializes a length of time; for `#[serde(with = "Period")]`.
    pub(crate) fn serialize<S: Serializer>(
        length: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Self::from(*length))
    }

    /// Deserializes a length of time from the text that [`Self::serialize`] writes; for
    /// `#[serde(with = "Period")]`.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        let period: Self = text.parse().map_err(de::Error::custom)?;
        Ok(period.as_duration())
    }
}

impl From<Duration> for Period {
    /// Clamps the length to between `1ms` and `24h`.
    fn from(length: Duration) -> Self {
        Self(length.clamp(LEAST, MOST))
    }
}

impl FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("`{text}` is not a length of time such as 10s, 500ms or 5m");
        let length: SignedDuration = text.trim().parse().map_err(|_| wrong())?;
        let length = Duration::try_from(length).map_err(|_| wrong())?;
        if !(LEAST..=MOST).contains(&length) {
            return Err(format!("`{text}` is not between 1ms and 24h"));
        }
        Ok(Self(length))
    }
}

impl From<Period> for String {
    fn from(period: Period) -> Self {
        period.to_string()
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SignedDuration::try_from(self.0) {
            // The alternate form is jiff's friendly one, `1m 30s`. The plain form is that of
            // ISO 8601, `PT1M30S`.
            Ok(length) => write!(f, "{length:#}"),
            Err(_) => write!(f, "{}s", self.0.as_secs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case("10s", 10_000)]
    #[case("500ms", 500)]
    #[case("5m", 300_000)]
    #[case("1h", 3_600_000)]
    #[case(" 2s ", 2_000)]
    fn reads_what_people_write(#[case] text: &str, #[case] millis: u64) {
        let period: Period = text.parse().unwrap();
        assert_eq!(period.as_duration(), Duration::from_millis(millis));
        assert_eq!(period.to_string().parse(), Ok(period));
    }

    #[test]
    fn off_is_no_length() {
        assert_eq!("off".parse(), Ok(PeriodOrOff(None)));
        assert_eq!(PeriodOrOff(None).to_string(), "off");
        let minute = PeriodOrOff(Some(Duration::from_secs(60)));
        assert_eq!(minute.to_string().parse(), Ok(minute));
        assert!("never".parse::<PeriodOrOff>().is_err());
    }

    #[rstest]
    #[case("")]
    #[case("10")]
    #[case("-3s")]
    #[case("0s")]
    #[case("soon")]
    #[case("1ns")]
    #[case("100000000000000h")]
    fn refuses_and_names_the_text(#[case] text: &str) {
        let error = text.parse::<Period>().unwrap_err();
        assert!(error.contains(&format!("`{text}`")), "{error}");
    }

    proptest! {
        #[test]
        fn never_panics(text in ".*") {
            let _ = text.parse::<Period>();
        }
    }
}
