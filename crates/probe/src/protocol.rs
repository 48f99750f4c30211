//! What a probe says to the agent and the agent to a probe: one JSON object per line.
//!
//! A probe writes [`Message`]s to descriptor [`DESCRIPTOR`] and reads [`Command`]s from its standard
//! input, the first of which are its settings; end of input tells it to exit. Unknown fields and
//! unknown message types are ignored, and an item of a list that is not understood costs that item, so
//! that either side may be newer.

mod configure;

use model::{
    CardRef, Device, DeviceId, Driver, Event, Extras, Reading, SinceReset, StuckCall, Telemetry,
    Unreadable, known_items,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::configure::{CONFIGURE_LIMIT, CheckPeriods, Configure, FileSearch, Scope};

/// The version of the protocol spoken here.
pub const VERSION: u32 = 2;

/// The descriptor on which a probe writes its lines.
pub const DESCRIPTOR: i32 = 3;

/// The longest line that is read; a longer one ends the probe.
pub const LINE_LIMIT: usize = 8 << 20;

/// The most lines that a probe may write within a second; one that writes more is ended.
pub const LINES_LIMIT: u32 = 5000;

/// One line from a probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Message {
    /// The first line: who speaks, and in which version.
    Hello(Hello),
    /// The whole picture; replaces the one before. Sent at start and whenever it changed.
    Report(Box<Report>),
    /// Sensors and counters of one device.
    Sample(Sample),
    /// What a check-up of one device read.
    Checkup(Checkup),
    /// Something happened to a device.
    Event(Event),
    /// Counters of a card right after an event.
    Count(Count),
    /// Sign of life, every two seconds, with the driver calls that are under way.
    Beat(Beat),
}

/// The first line of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    /// The protocol version, [`VERSION`].
    pub protocol: u32,
    /// The backend's name: `nvidia`.
    pub probe: String,
    /// The probe's own version.
    pub version: String,
}

/// Everything a probe sees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The driver, when there is one that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// Every device that could be read.
    #[serde(default, deserialize_with = "known_items")]
    pub devices: Vec<Device>,
    /// Devices that exist and could not be read.
    #[serde(
        default,
        deserialize_with = "known_items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub unreadable: Vec<Unreadable>,
    /// What a person should know and what is no verdict on a device: a monitor that does not work.
    #[serde(
        default,
        deserialize_with = "known_items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub warnings: Vec<String>,
    /// Cards left out because the agent asked for it (`skip`).
    #[serde(
        default,
        deserialize_with = "known_items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub skipped: Vec<CardRef>,
    /// What there is beside the devices.
    #[serde(default, skip_serializing_if = "Extras::is_empty")]
    pub extras: Extras,
}

/// Why a probe has no driver to talk to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// What kind of problem it is.
    pub kind: ProblemKind,
    /// What was tried and what to do, for a person.
    pub message: String,
}

/// The kinds of [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProblemKind {
    /// No driver library was found.
    NoDriver,
    /// A driver was found and does not work.
    DriverFailed,
}

/// Sensors and counters of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Whose they are.
    pub device: DeviceId,
    /// What was read.
    pub telemetry: Telemetry,
    /// What was counted since the card's last reset; only of whole cards.
    #[serde(default, skip_serializing_if = "SinceReset::is_default")]
    pub since_reset: SinceReset,
}

/// What a check-up of one device read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkup {
    /// Whose check-up it is.
    pub device: DeviceId,
    /// What was read.
    pub reading: Reading,
}

/// Counters of a card, read right after an event of it was told. They show whether a reset that is seen
/// later is newer than the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Count {
    /// The card.
    pub device: DeviceId,
    /// Its counters since its last reset.
    pub since_reset: SinceReset,
}

/// A sign of life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Beat {
    /// Driver calls that have been under way for more than a second.
    #[serde(
        default,
        deserialize_with = "known_items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub calls: Vec<StuckCall>,
    /// Driver calls made since the probe started.
    #[serde(default)]
    pub made: u64,
}

/// One line to a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Command {
    /// The settings: the first line, and only there.
    Configure(Box<Configure>),
    /// Look at the devices again now and report even if nothing changed.
    Refresh,
    /// Close every driver handle and exit.
    Stop,
}

/// Why a line from a probe is no message.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not JSON, or known fields have wrong types.
    #[error("not a probe message: {source}: {line}")]
    Malformed {
        /// What the parser says.
        source: serde_json::Error,
        /// The start of the line.
        line: String,
    },
}

// === impl Report ===

impl Report {
    /// Warns of the devices in the line that were not understood and left out.
    fn warn_of_unknown(&mut self, line: &[u8]) {
        /// The most devices that are named.
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
    /// The line for this command, with its newline.
    pub fn line(&self) -> String {
        let line = serde_json::to_string(self);
        line.expect("commands have string keys and no failing serializer") + "\n"
    }
}

// === impl Message ===

impl Message {
    /// Reads one line. `Ok(None)` is a message of a type, or a check-up of a tier, that this version
    /// does not know.
    pub fn parse(line: impl AsRef<[u8]>) -> Result<Option<Self>, Error> {
        let line = line.as_ref();
        #[derive(Deserialize)]
        struct Tagged {
            r#type: String,
            #[serde(default)]
            reading: serde_json::Value,
        }
        const TIERS: [&str; 4] = ["working", "performing", "trend", "deep"];
        fn tier(reading: &serde_json::Value) -> Option<&str> {
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
            "checkup" if tier(&reading).is_some_and(|tier| !TIERS.contains(&tier)) => Ok(None),
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

    /// The line for this message, without its newline.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("messages have string keys and no failing serializer")
    }
}
