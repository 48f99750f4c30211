//! The settings of a probe: the first line that it reads.
//!
//! Lengths of time are whole milliseconds, and their names say so: a probe in any language reads
//! them without a parser of its own.

use std::{path::PathBuf, time::Duration};

use model::CardRef;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::Value;

/// The longest line of settings, its newline included. It fits into a new pipe.
pub const CONFIGURE_LIMIT: usize = 64 << 10;

/// Settings of a probe. A field that is missing has its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Configure {
    /// Folder under which the host's `/sys`, `/proc` and `/dev` are; `/` on the host itself.
    #[serde(serialize_with = "lossy")]
    pub host_root: PathBuf,
    /// Cards to look at.
    pub cards: Scope,
    /// Listens to the driver's events.
    pub events: bool,
    /// Asks how devices are linked.
    pub links: bool,
    /// Time between two looks; at least a millisecond.
    #[serde(rename = "period_millis", with = "millis")]
    #[schemars(with = "u64")]
    pub period: Duration,
    /// Time between two checks of each tier.
    pub checks: CheckPeriods,
    /// Says in the samples which processes compute on a device.
    pub processes: bool,
    /// Time at which the driver's files that a container needs are looked for.
    pub driver_files: FileSearch,
    /// The vendor's own section: the keys of `backends.<name>` of `ostler.yaml` that its probe reads,
    /// with their defaults filled in.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub backend: Value,
}

/// Cards that a probe looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// All of them.
    #[default]
    All,
    /// All but these: no call is made on them, none of their files is read, and the report lists them
    /// in `skipped`.
    Skip(Vec<CardRef>),
    /// Only this one.
    Only(CardRef),
}

/// Time between two checks of each tier; zero is never.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CheckPeriods {
    /// Of the tier `working`.
    #[serde(rename = "working_millis", with = "millis")]
    #[schemars(with = "u64")]
    pub working: Duration,
    /// Of the tier `performing`.
    #[serde(rename = "performing_millis", with = "millis")]
    #[schemars(with = "u64")]
    pub performing: Duration,
    /// Of the tier `trend`.
    #[serde(rename = "trend_millis", with = "millis")]
    #[schemars(with = "u64")]
    pub trend: Duration,
}

/// Time at which the driver's files are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileSearch {
    /// Not at all.
    #[default]
    Never,
    /// After the first report, which does not wait for them.
    Later,
    /// Before the first report, which has them.
    Now,
}

// === impl Configure ===

impl Default for Configure {
    /// The whole host, with events, links and checks.
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
    /// Reads the vendor's own section; the defaults where there is none.
    ///
    /// # Errors
    /// A known key has a value of the wrong type.
    pub fn section<T: Default + DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
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

/// Writes a path as a text, also one that is not UTF-8.
fn lossy<S: Serializer>(path: &std::path::Path, serializer: S) -> Result<S::Ok, S::Error> {
    path.to_string_lossy().serialize(serializer)
}

/// Lengths of time as whole milliseconds.
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
            configure.section::<Section>()
        };
        assert_eq!(read(Value::Null).unwrap(), Section::default());
        assert_eq!(read(json!({"path": "/x"})).unwrap().path, "/x");
        assert!(read(json!({"path": 7})).is_err());
    }
}
