//! Protocol between a probe and the agent: one JSON object per line.
//!
//! A probe writes [`Message`]s to descriptor [`DESCRIPTOR`] and reads [`Command`]s from its
//! standard input. The first command has its settings; the end of the input tells the probe to
//! exit. Either side may be newer: unknown fields and unknown message types are ignored, and an
//! invalid item of a list is dropped without its neighbours.

mod configure;

use model::{
    CardRef, Device, DeviceId, Driver, Event, Extras, Reading, SinceReset, StuckCall, Telemetry,
    Unreadable, known_items,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::configure::{CONFIGURE_LIMIT, CheckPeriods, Configure, FileSearch, Scope};

/// Version of the protocol. The agent refuses probes of another version.
pub const VERSION: u32 = 2;

/// Descriptor to which a probe writes its lines.
pub const DESCRIPTOR: i32 = 3;

/// Length of the longest line of a probe, in bytes (8 MiB). A longer line ends the probe.
pub const LINE_LIMIT: usize = 8 << 20;

/// Highest number of lines that a probe may write within a second; a probe that writes more is ended.
pub const LINES_LIMIT: u32 = 5000;

/// One line of a probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Message {
    /// First line: the probe's name and version, and the version of the protocol.
    Hello(Hello),
    /// All devices. Replaces the report before. Sent at the start and after each change.
    Report(Box<Report>),
    /// Sensors and counters of one device.
    Sample(Sample),
    /// Check-up of one device: the facts of one tier of checks.
    Checkup(Checkup),
    /// Event of one device, announced by the driver.
    Event(Event),
    /// Counters of a card, read right after an event.
    Count(Count),
    /// Sign of life, every two seconds, with the driver calls that are overdue.
    Beat(Beat),
}

/// First line of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    /// Version of the protocol that the probe speaks: 2.
    pub protocol: u32,
    /// Name of the backend: `nvidia`.
    pub probe: String,
    /// Version of the probe itself.
    pub version: String,
}

/// Report of all devices of a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Driver, if there is one that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    /// Reason why no driver answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// Devices that could be read.
    #[serde(default, deserialize_with = "known_items")]
    pub devices: Vec<Device>,
    /// Devices that exist but could not be read.
    #[serde(
        default,
        deserialize_with = "known_items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub unreadable: Vec<Unreadable>,
    /// Warnings for a person, one sentence each, that are not about the health of a device: a
    /// monitor that does not work.
    #[serde(
        default,
        deserialize_with = "known_items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub warnings: Vec<String>,
    /// Cards that are left out because the settings say so (`skip`).
    #[serde(
        default,
        deserialize_with = "known_items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub skipped: Vec<CardRef>,
    /// Facts of the node that belong to no device.
    #[serde(default, skip_serializing_if = "Extras::is_empty")]
    pub extras: Extras,
}

/// Reason why a probe has no working driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Kind of the problem.
    pub kind: ProblemKind,
    /// Attempts and remedy, for a person.
    pub message: String,
}

/// Kind of a [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProblemKind {
    /// No driver library was found.
    NoDriver,
    /// A driver was found but does not work.
    DriverFailed,
}

/// Sensors and counters of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Device that the values belong to.
    pub device: DeviceId,
    /// Values of the sensors and counters.
    pub telemetry: Telemetry,
    /// Counters since the card's last reset; only for whole cards.
    #[serde(default, skip_serializing_if = "SinceReset::is_default")]
    pub since_reset: SinceReset,
}

/// Check-up of one device: the facts of one tier of checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkup {
    /// Device that was checked.
    pub device: DeviceId,
    /// Facts that were read.
    pub reading: Reading,
}

/// Counters of a card, read right after an event of the card was sent. They show if a reset that is
/// noticed later happened before or after the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Count {
    /// Card that the counters belong to.
    pub device: DeviceId,
    /// Counters since the card's last reset.
    pub since_reset: SinceReset,
}

/// Sign of life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Beat {
    /// Driver calls that have not returned for more than a second.
    #[serde(
        default,
        deserialize_with = "known_items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub calls: Vec<StuckCall>,
    /// Number of driver calls since the start of the probe.
    #[serde(default)]
    pub made: u64,
}

/// One line to a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Command {
    /// Settings. Only as the first line.
    Configure(Box<Configure>),
    /// Read all devices again now, and report even if nothing changed.
    Refresh,
    /// Close every driver handle and exit.
    Stop,
}

/// Error of parsing a line of a probe.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The line is not JSON, or a known field has the wrong type.
    #[error("not a probe message: {source}: {line}")]
    Malformed {
        /// The parser's error.
        source: serde_json::Error,
        /// First 120 characters of the line.
        line: String,
    },
}

// === impl Report ===

impl Report {
    /// Adds warnings about the devices of the line that are invalid and were left out.
    // `known_items` drops invalid items silently; the line is parsed again to name them.
    fn warn_of_unknown(&mut self, line: &[u8]) {
        /// Highest number of warnings that name a device each.
        const NAMED: usize = 3;
        #[derive(Deserialize)]
        struct Lines<'a> {
            #[serde(default, borrow)]
            devices: Vec<&'a RawValue>,
        }
        let lines: Result<Lines<'_>, _> = serde_json::from_slice(line);
        let devices = lines.map_or_else(|_| Vec::new(), |lines| lines.devices);
        let unknown = devices.len().saturating_sub(self.devices.len());
        let problems = devices.iter().enumerate().filter_map(|(n, device)| {
            let problem = serde_json::from_str::<Device>(device.get()).err()?;
            Some(format!(
                "device {n} of the report is not understood: {problem}"
            ))
        });
        if unknown > 0 {
            self.warnings.extend(problems.take(NAMED));
        }
        if unknown > NAMED {
            let more = unknown - NAMED;
            let warning = format!("{more} more devices are not understood");
            self.warnings.push(warning);
        }
    }
}

// === impl Command ===

impl Command {
    /// Serializes the command into a line, with its newline.
    pub fn line(&self) -> String {
        let line = serde_json::to_string(self);
        line.expect("commands have string keys and no failing serializer") + "\n"
    }
}

// === impl Message ===

impl Message {
    /// Parses one line. `Ok(None)` means a message of a type, or a check-up of a tier, that this
    /// version does not know: a newer probe may send it.
    ///
    /// # Errors
    /// The line is not JSON, or a known field has the wrong type.
    pub fn parse_line(line: impl AsRef<[u8]>) -> Result<Option<Self>, Error> {
        let line = line.as_ref();
        #[derive(Deserialize)]
        struct Tagged {
            r#type: String,
            #[serde(default)]
            reading: serde_json::Value,
        }
        const TIERS: [&str; 4] = ["working", "performing", "trend", "deep"];
        fn tier_name(reading: &serde_json::Value) -> Option<&str> {
            reading["values"]
                .as_object()?
                .keys()
                .next()
                .map(String::as_str)
        }
        let malformed = |source| Error::Malformed {
            source,
            line: String::from_utf8_lossy(line).chars().take(120).collect(),
        };
        let Tagged { r#type, reading } = serde_json::from_slice(line).map_err(malformed)?;
        match r#type.as_str() {
            // A newer probe may know more tiers.
            "checkup" if tier_name(&reading).is_some_and(|tier| !TIERS.contains(&tier)) => Ok(None),
            "hello" | "report" | "sample" | "checkup" | "event" | "count" | "beat" => {
                let mut message = serde_json::from_slice(line).map_err(malformed)?;
                if let Self::Report(report) = &mut message {
                    report.warn_of_unknown(line);
                }
                Ok(Some(message))
            }
            _ => Ok(None),
        }
    }

    /// Serializes the message into a line, without its newline.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("messages have string keys and no failing serializer")
    }
}
