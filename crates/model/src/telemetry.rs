//! Sensor values of devices. An absent value is not supported or was not read.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::DeviceId;

/// Sample of a device's sensors and counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Telemetry {
    /// Core temperature, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_celsius: Option<u32>,
    /// Power draw, in milliwatts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_milliwatts: Option<u32>,
    /// Memory in use, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_used_bytes: Option<u64>,
    /// Use of the compute engines, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization_percent: Option<u32>,
    /// Memory errors since the driver was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecc: Option<Ecc>,
    /// Compute processes on the device, sorted by process id; absent if the probe did not ask for
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<Process>>,
}

/// Process that uses a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Process id in the host's PID namespace.
    pub pid: u32,
    /// Name of the process; absent if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Device memory of the process, in bytes; absent if the driver does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// Counters of a card that restart at zero when the card is reset or its driver is loaded. An
/// absent counter was not read or is not supported, and proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SinceReset {
    /// Energy used, in millijoules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_millijoules: Option<u64>,
    /// PCIe replays. Read only if the card does not report its energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_replays: Option<u64>,
    /// Memory errors, corrected or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecc_errors: Option<u64>,
    /// Time at which the probe opened the driver. A driver may initialise a card again that no
    /// process had open, and the counters then restart without a reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub opened: Option<Timestamp>,
    /// True if the driver keeps the card initialised while no process has it open (persistence
    /// mode).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub persistent: bool,
}

/// Memory errors since the driver was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ecc {
    /// Errors that the hardware corrected.
    pub corrected: u64,
    /// Errors that the hardware could not correct.
    pub uncorrected: u64,
}

/// Newest sample of each device. Samples are numbered in the order of arrival, so that a reader can
/// tell without a clock if a device was sampled after a certain moment.
///
/// ```
/// # use model::{DeviceId, Samples, Telemetry};
/// let (mut samples, card) = (Samples::default(), DeviceId::new("GPU-1"));
/// samples.insert(&card, Telemetry::default());
/// let asked = samples.sample_count();
/// assert!(!samples.is_newer(&card, asked));
/// samples.insert(&card, Telemetry::default());
/// assert!(samples.is_newer(&card, asked));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    count: u64,
    devices: BTreeMap<DeviceId, NumberedSample>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NumberedSample {
    number: u64,
    telemetry: Telemetry,
}

// === impl SinceReset ===

impl SinceReset {
    /// Returns true if all fields have their defaults. Such a value is left out in JSON.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if no counter was read.
    pub fn is_empty(&self) -> bool {
        self.counters().iter().all(Option::is_none)
    }

    /// Returns the counters, the one with the strongest evidence of a reset first.
    ///
    /// - Energy always grows. Only a reset or a reload of the driver sets it to zero.
    /// - PCIe replays are set to zero by the same, but often are 0 before, so that nothing shows.
    /// - Memory errors can be cleared by an operator without a reset (`nvidia-smi
    ///   --reset-ecc-errors=0`).
    pub fn counters(&self) -> [Option<u64>; 3] {
        [self.energy_millijoules, self.pcie_replays, self.ecc_errors]
    }

    /// Returns true if a counter that is lower now than in `earlier` proves a reset. This is so if
    /// the card stayed initialised in between, because the probe had it open or the driver keeps it
    /// so.
    pub fn continues(&self, earlier: &Self) -> bool {
        self.opened == earlier.opened || (self.persistent && earlier.persistent)
    }
}

// === impl Samples ===

impl Samples {
    /// Stores a sample as the newest of its device.
    pub fn insert(&mut self, device: &DeviceId, telemetry: Telemetry) {
        self.count += 1;
        let sample = NumberedSample {
            number: self.count,
            telemetry,
        };
        self.devices.insert(device.clone(), sample);
    }

    /// Returns the number of samples that arrived so far.
    pub fn sample_count(&self) -> u64 {
        self.count
    }

    /// Returns the newest sample of a device.
    pub fn telemetry(&self, device: &DeviceId) -> Option<&Telemetry> {
        Some(&self.devices.get(device)?.telemetry)
    }

    /// Returns true if a sample of the device arrived after the first `count` samples.
    pub fn is_newer(&self, device: &DeviceId, count: u64) -> bool {
        let sample = self.devices.get(device);
        sample.is_some_and(|sample| sample.number > count)
    }

    /// Drops the samples of devices for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(&DeviceId) -> bool) {
        self.devices.retain(|device, _| keep(device));
    }
}
