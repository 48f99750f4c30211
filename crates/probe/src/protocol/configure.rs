//! Settings of a probe: the first line that a probe reads.
//!
//! Durations are whole milliseconds, and the names of their fields end in `_millis`: a probe in any
//! language reads them without a parser for durations.

use std::{path::PathBuf, time::Duration};

use model::CardRef;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::Value;

/// Length of the longest line of settings, newline included, in bytes (64 KiB).
// A new pipe holds 64 KiB (pipe(7)), and the agent writes the line before the probe reads.
pub const CONFIGURE_LIMIT: usize = 64 << 10;

/// Settings of a probe. A missing field has its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Configure {
    /// Folder that contains the host's `/sys`, `/proc` and `/dev`; `/` on the host itself.
    #[serde(serialize_with = "lossy")]
    pub host_root: PathBuf,
    /// Cards to read.
    pub cards: Scope,
    /// If true, the probe reports the driver's events.
    pub events: bool,
    /// If true, the probe reads the links between devices.
    pub links: bool,
    /// Time between two reads of all devices, in milliseconds; at least 1.
    #[serde(rename = "period_millis", with = "millis")]
    #[schemars(with = "u64")]
    pub period: Duration,
    /// Periods of the tiers of checks.
    pub checks: CheckPeriods,
    /// If true, the samples list the processes that compute on a device.
    pub processes: bool,
    /// Time at which the probe looks for the driver's files that a container needs.
    pub driver_files: FileSearch,
    /// Section of the vendor: the keys of `backends.<name>` of `ostler.yaml` that the probe reads,
    /// with defaults filled in.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub backend: Value,
}

/// Cards that a probe reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// All cards.
    #[default]
    All,
    /// All cards except these. The probe makes no driver call for these cards, reads none of their
    /// files, and lists them in `skipped` of the report.
    Skip(Vec<CardRef>),
    /// Only this card.
    Only(CardRef),
}

/// Time between two checks of each tier, in milliseconds; 0 turns a tier off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CheckPeriods {
    /// Period of the tier `working`. Default one minute.
    #[serde(rename = "working_millis", with = "millis")]
    #[schemars(with = "u64")]
    pub working: Duration,
    /// Period of the tier `performing`. Default five minutes.
    #[serde(rename = "performing_millis", with = "millis")]
    #[schemars(with = "u64")]
    pub performing: Duration,
    /// Period of the tier `trend`. Default 15 minutes.
    #[serde(rename = "trend_millis", with = "millis")]
    #[schemars(with = "u64")]
    pub trend: Duration,
}

/// Time at which a probe looks for the driver's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileSearch {
    /// Never.
    #[default]
    Never,
    /// After the first report, which does not wait for the files.
    Later,
    /// Before the first report, which includes the files.
    Now,
}

// === impl Configure ===

impl Default for Configure {
    /// Settings for the whole host, with events, links and checks.
    fn default() -> Self {
        Self {
            host_root: PathBuf::from("/"),
            cards: Scope::All,
            events: true,
            links: true,
            period: Duration::from_secs(10),
            checks: CheckPeriods::default(),
            processes: false,
            driver_files: FileSearch::Never,
            backend: Value::Null,
        }
    }
}

impl Configure {
    /// Parses the section of the vendor; the defaults if there is none.
    ///
    /// # Errors
    /// A known key has a value of the wrong type.
    pub fn parse_section<T: Default + DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        if self.backend.is_null() {
            return Ok(T::default());
        }
        T::deserialize(&self.backend)
    }
}

// === impl CheckPeriods ===

impl Default for CheckPeriods {
    fn default() -> Self {
        Self {
            working: Duration::from_secs(60),
            performing: Duration::from_secs(5 * 60),
            trend: Duration::from_secs(15 * 60),
        }
    }
}

/// Serializes a path as a text. Bytes that are not UTF-8 are replaced.
fn lossy<S: Serializer>(path: &std::path::Path, serializer: S) -> Result<S::Ok, S::Error> {
    path.to_string_lossy().serialize(serializer)
}

/// Durations as whole milliseconds.
mod millis {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        length: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let millis = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        millis.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_empty_object_is_every_default_and_an_unknown_field_is_ignored() {
        let read: Configure = serde_json::from_value(json!({"mood": "good"})).unwrap();
        assert_eq!(read, Configure::default());
    }

    #[test]
    fn what_is_written_is_read_again() {
        let configure = Configure {
            cards: Scope::Skip(vec!["0000:07:00.0".parse().unwrap(), CardRef::Index(3)]),
            period: Duration::from_millis(1500),
            backend: json!({"driverPath": "/driver"}),
            ..Configure::default()
        };
        let line = serde_json::to_value(&configure).unwrap();
        assert_eq!(line["cards"], json!({"skip": ["0000:07:00.0", "3"]}));
        assert_eq!(line["period_millis"], 1500);
        assert_eq!(
            serde_json::from_value::<Configure>(line).unwrap(),
            configure
        );
    }

    #[test]
    fn a_section_of_the_wrong_type_is_an_error_and_none_is_the_default() {
        #[derive(Debug, Default, PartialEq, Deserialize)]
        struct Section {
            path: String,
        }
        let read = |backend| {
            let configure = Configure {
                backend,
                ..Configure::default()
            };
            configure.parse_section::<Section>()
        };
        assert_eq!(read(Value::Null).unwrap(), Section::default());
        assert_eq!(read(json!({"path": "/x"})).unwrap().path, "/x");
        assert!(read(json!({"path": 7})).is_err());
    }
}
