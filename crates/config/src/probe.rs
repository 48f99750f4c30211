//! Section `probe`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    Period,
    source::{Section, SectionReader},
};

/// Period and time limits of every probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Probe {
    /// Time between two reports.
    #[serde(with = "Period")]
    pub period: Duration,
    /// Longest time that a driver call for one card may take.
    #[serde(with = "Period")]
    pub call_limit: Duration,
    /// Longest time that a call for the whole driver may take.
    #[serde(with = "Period")]
    pub driver_call_limit: Duration,
    /// Pause before a stuck card is tried again. It doubles with each try.
    #[serde(with = "Period")]
    pub retry_pause: Duration,
}

// === impl Probe ===

impl Section for Probe {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("period", &mut self.period);
        at.set_option("callLimit", &mut self.call_limit);
        at.set_option("driverCallLimit", &mut self.driver_call_limit);
        at.set_option("retryPause", &mut self.retry_pause);
    }
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(10),
            call_limit: Duration::from_secs(10),
            driver_call_limit: Duration::from_secs(60),
            retry_pause: Duration::from_secs(5),
        }
    }
}
