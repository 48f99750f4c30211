//! What a device measures about itself, at one moment. Absent means not supported or not read.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::DeviceId;

/// One sample of a device's sensors and counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Telemetry {
    /// Core temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_celsius: Option<u32>,
    /// Power drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_milliwatts: Option<u32>,
    /// Memory in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_used_bytes: Option<u64>,
    /// Busy compute engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization_percent: Option<u32>,
    /// Uncorrected and corrected memory errors since the driver was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecc: Option<Ecc>,
    /// Who computes on it, sorted by process; absent where nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<Process>>,
}

/// A process that uses a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Its id, as the host counts.
    pub pid: u32,
    /// Its name, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Device memory that it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// Counters of a card that begin at zero when the card is reset or its driver is loaded. A counter that
/// is absent was not read or is not supported, and says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SinceReset {
    /// Energy drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_millijoules: Option<u64>,
    /// PCIe replays; read where the card does not tell its energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_replays: Option<u64>,
    /// Memory errors, repaired or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecc_errors: Option<u64>,
    /// Time at which the probe opened the driver. A driver may set a card up anew that nobody had open,
    /// and the card then counts from zero without a reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub opened: Option<Timestamp>,
    /// True if the driver keeps the card set up while nobody has it open (persistence mode).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub persistent: bool,
}

/// Memory error counters since the driver was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ecc {
    /// Errors the hardware repaired.
    pub corrected: u64,
    /// Errors it could not repair.
    pub uncorrected: u64,
}

/// The newest sample of each device. Samples are numbered as they come, so that a reader can tell
/// whether a device was sampled since a certain moment without looking at a clock.
///
/// ```
/// # use model::{DeviceId, Samples, Telemetry};
/// let (mut samples, card) = (Samples::default(), DeviceId::new("GPU-1"));
/// samples.insert(&card, Telemetry::default());
/// let asked = samples.count();
/// assert!(!samples.is_newer(&card, asked));
/// samples.insert(&card, Telemetry::default());
/// assert!(samples.is_newer(&card, asked));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    count: u64,
    devices: BTreeMap<DeviceId, Numbered>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Numbered {
    number: u64,
    telemetry: Telemetry,
}

// === impl SinceReset ===

impl SinceReset {
    /// True if nothing is said.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// True if no counter was read.
    pub fn is_empty(&self) -> bool {
        self.counters().iter().all(Option::is_none)
    }

    /// The counters, the one that tells most of a reset first.
    ///
    /// - Energy always grows, and only a reset or a new loading of the driver sets it back.
    /// - PCIe replays are set back by the same, but often stand at 0, so that nothing shows.
    /// - An operator can clear the counts of memory errors without a reset
    ///   (`nvidia-smi --reset-ecc-errors=0`).
    pub fn counters(&self) -> [Option<u64>; 3] {
        [self.energy_millijoules, self.pcie_replays, self.ecc_errors]
    }

    /// True if a counter that is lower now than in `earlier` was set back by a reset: the card was set up
    /// without interruption, because the probe had it open or the driver keeps it so.
    pub fn continues(&self, earlier: &Self) -> bool {
        self.opened == earlier.opened || (self.persistent && earlier.persistent)
    }
}

// === impl Samples ===

impl Samples {
    /// Takes in a sample.
    pub fn insert(&mut self, device: &DeviceId, telemetry: Telemetry) {
        self.count += 1;
        let sample = Numbered {
            number: self.count,
            telemetry,
        };
        self.devices.insert(device.clone(), sample);
    }

    /// Number of samples that came so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The newest sample of a device.
    pub fn telemetry(&self, device: &DeviceId) -> Option<&Telemetry> {
        Some(&self.devices.get(device)?.telemetry)
    }

    /// True if a sample of the device came after the first `count` samples.
    pub fn is_newer(&self, device: &DeviceId, count: u64) -> bool {
        let sample = self.devices.get(device);
        sample.is_some_and(|sample| sample.number > count)
    }

    /// Drops the samples of devices for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(&DeviceId) -> bool) {
        self.devices.retain(|device, _| keep(device));
    }
}
