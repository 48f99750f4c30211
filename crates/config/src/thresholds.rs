//! Section `health.thresholds`.

use std::{fmt, str::FromStr, time::Duration};

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::{
    Period,
    source::{FileItem, ReadNotes, Section, SectionReader, number_within, parsed_text},
};

/// Limits at which a value becomes a finding. `off` switches a check off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Thresholds {
    /// Uncorrected memory errors (ECC), since the driver was loaded, that are tolerated.
    pub ecc_uncorrected: u32,
    /// Smallest distance, in degrees Celsius, to the temperature at which the hardware slows down.
    #[schemars(range(max = 100))]
    pub temperature_margin: u32,
    // An idle card lowers its PCIe generation to save power. That is no fault.
    /// Utilization, in percent, from which a PCIe generation below the highest is a finding.
    #[schemars(range(max = 100))]
    pub busy_percent: u32,
    /// Errors on direct links to other cards, between two check-ups, that are tolerated.
    pub link_errors: u32,
    /// Corrected memory errors (ECC) per hour that are tolerated.
    #[serde(with = "NumberOrOff")]
    pub ecc_corrected_per_hour: Option<u32>,
    /// Repaired memory rows per hour that are tolerated.
    #[serde(with = "NumberOrOff")]
    pub repaired_rows_per_hour: Option<u32>,
    /// PCIe replays per hour that are tolerated.
    #[serde(with = "NumberOrOff")]
    pub pcie_replays_per_hour: Option<u32>,
    /// Mean power, in watts, that is tolerated.
    #[serde(with = "NumberOrOff")]
    pub mean_watts: Option<u32>,
    /// Shortest time over which a mean power counts.
    #[serde(with = "Period")]
    pub mean_time: Duration,
}

/// Whole number, or `off`, which is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberOrOff(pub Option<u32>);

// === impl Thresholds ===

impl Section for Thresholds {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        let or_off = NumberOrOff::read_number_or_off;
        at.set_option("eccUncorrected", &mut self.ecc_uncorrected);
        at.set_by(
            "temperatureMargin",
            &mut self.temperature_margin,
            number_within(0..=100),
        );
        at.set_by(
            "busyPercent",
            &mut self.busy_percent,
            number_within(0..=100),
        );
        at.set_option("linkErrors", &mut self.link_errors);
        at.set_by(
            "eccCorrectedPerHour",
            &mut self.ecc_corrected_per_hour,
            or_off,
        );
        at.set_by(
            "repairedRowsPerHour",
            &mut self.repaired_rows_per_hour,
            or_off,
        );
        at.set_by(
            "pcieReplaysPerHour",
            &mut self.pcie_replays_per_hour,
            or_off,
        );
        at.set_by("meanWatts", &mut self.mean_watts, or_off);
        at.set_option("meanTime", &mut self.mean_time);
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            ecc_uncorrected: 0,
            temperature_margin: 5,
            busy_percent: 50,
            link_errors: 0,
            ecc_corrected_per_hour: Some(100),
            repaired_rows_per_hour: Some(0),
            pcie_replays_per_hour: Some(100),
            mean_watts: None,
            mean_time: Duration::from_secs(60),
        }
    }
}

// === impl NumberOrOff ===

impl FromStr for NumberOrOff {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.parse().ok();
        match text {
            "off" => Ok(Self(None)),
            text => match number(text) {
                Some(number) => Ok(Self(Some(number))),
                None => Err(format!("`{text}` is neither a whole number nor off")),
            },
        }
    }
}

impl NumberOrOff {
    /// Reads a number, or `off`.
    fn read_number_or_off(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Option<u32>> {
        parsed_text("write a whole number, or off")(item, notes).map(|Self(number)| number)
    }

    /// Serializes a number, or `off`; for `#[serde(with = "NumberOrOff")]`.
    pub(crate) fn serialize<S: Serializer>(
        number: &Option<u32>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match number {
            Some(number) => serializer.serialize_u32(*number),
            None => serializer.serialize_str("off"),
        }
    }
}

impl fmt::Display for NumberOrOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str("off"),
        }
    }
}

impl JsonSchema for NumberOrOff {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NumberOrOff".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [{"const": "off"}, {"type": "integer", "minimum": 0}]
        })
    }
}
