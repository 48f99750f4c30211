//! Where a value that a check-up read becomes a finding.

use std::{fmt, str::FromStr, time::Duration};

use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::Period;

/// Where a value becomes a finding. `None` switches a check off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Memory errors that were not repaired and are tolerated.
    pub ecc_uncorrected: u32,
    /// How long a device may take to join its fabric.
    pub fabric_join: Duration,
    /// How close to where the hardware slows down a temperature may come, in degrees.
    pub temperature_margin: u32,
    /// From which utilization on a low PCIe generation counts.
    pub busy_percent: u32,
    /// NVLink errors between two check-ups that are tolerated.
    pub nvlink_errors: u32,
    /// Repaired memory errors in an hour that are tolerated.
    pub ecc_corrected_per_hour: Option<u32>,
    /// Rows remapped in an hour that are tolerated.
    pub remapped_rows_per_hour: Option<u32>,
    /// PCIe replays in an hour that are tolerated.
    pub pcie_replays_per_hour: Option<u32>,
    /// Mean power in watts that is tolerated.
    pub mean_watts: Option<u32>,
    /// The shortest time over which a mean power counts.
    pub mean_time: Duration,
}

/// A whole number, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberOrOff(pub Option<u32>);

// === impl Thresholds ===

impl Thresholds {
    /// In the shape of `ostler.yaml`.
    pub(crate) fn to_value(self) -> Value {
        let limit = |limit: Option<u32>| limit.map_or_else(|| json!("off"), |limit| json!(limit));
        json!({
            "eccUncorrected": self.ecc_uncorrected,
            "fabricJoin": Period::from(self.fabric_join).to_string(),
            "temperatureMargin": self.temperature_margin,
            "busyPercent": self.busy_percent,
            "nvlinkErrors": self.nvlink_errors,
            "eccCorrectedPerHour": limit(self.ecc_corrected_per_hour),
            "remappedRowsPerHour": limit(self.remapped_rows_per_hour),
            "pcieReplaysPerHour": limit(self.pcie_replays_per_hour),
            "meanWatts": limit(self.mean_watts),
            "meanTime": Period::from(self.mean_time).to_string(),
        })
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            ecc_uncorrected: 0,
            fabric_join: Duration::from_secs(600),
            temperature_margin: 5,
            busy_percent: 50,
            nvlink_errors: 0,
            ecc_corrected_per_hour: Some(100),
            remapped_rows_per_hour: Some(0),
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
