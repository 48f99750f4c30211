//! Sensors and counters of a card, and their names in commands.

use serde::{Deserialize, Serialize};

/// Sensors and counters of a card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sensors {
    /// Core temperature in degrees Celsius.
    pub temperature: u64,
    /// Memory temperature in degrees Celsius; zero if it is not measured.
    pub memory_temperature: u64,
    /// Power draw in milliwatts.
    pub power: u64,
    /// Utilisation of the engines in per cent.
    pub utilization: u64,
    /// Utilisation of the memory in per cent.
    pub memory_utilization: u64,
    /// Memory in use, in MiB.
    pub memory_used: u64,
    /// Multiprocessor clock in MHz.
    pub clock_sm: u64,
    /// Memory clock in MHz.
    pub clock_memory: u64,
    /// NVML's performance state.
    pub performance_state: u64,
    /// NVML's clock event reasons, a bit mask.
    pub clock_reasons: u64,
    /// Corrected memory errors since the last reset.
    pub ecc_corrected: u64,
    /// Uncorrected memory errors since the last reset.
    pub ecc_uncorrected: u64,
    /// Rows remapped after corrected errors.
    pub remapped_corrected: u64,
    /// Rows remapped after uncorrected errors.
    pub remapped_uncorrected: u64,
    /// Not zero if a row remapping is pending until the next reset.
    pub remap_pending: u64,
    /// Not zero if a row remapping has failed.
    pub remap_failed: u64,
    /// Number of pages that wait for a reset or reboot to be retired.
    pub retired_pending: u64,
    /// Current PCIe generation.
    pub pcie_generation: u64,
    /// Current number of PCIe lanes.
    pub pcie_width: u64,
    /// PCIe replays since the last reset.
    pub pcie_replays: u64,
    /// Pages retired after uncorrected errors.
    pub retired_pages: u64,
    /// Utilisation of the encoders in per cent.
    pub encoder_utilization: u64,
    /// Utilisation of the decoders in per cent.
    pub decoder_utilization: u64,
    /// Fan speed in per cent of the maximum.
    pub fan_speed: u64,
    /// Energy since the last reset, in millijoules; zero makes it grow with time.
    pub energy: u64,
    /// Errors of all NVLinks.
    pub nvlink_errors: u64,
    /// NVML's number of the fabric state: 1 not started, 2 in progress; 0 (not supported) and 3
    /// (completed) are final.
    pub fabric_state: u64,
    /// NVML code of the result of joining the fabric; zero means success.
    pub fabric_status: u64,
    /// Corrected memory errors before the last reset.
    pub ecc_corrected_past: u64,
    /// Uncorrected memory errors before the last reset.
    pub ecc_uncorrected_past: u64,
    /// NVML's number of the recovery action: 1 reset, 2 reboot, 4 drain and reset.
    pub recovery_action: u64,
}

/// Name of a sensor and access to its field.
type SensorField = (&'static str, fn(&mut Sensors) -> &mut u64);

/// All sensors by name, for [`Sensors::field`].
const SENSORS: [SensorField; 31] = [
    ("temperature", |s| &mut s.temperature),
    ("memory-temperature", |s| &mut s.memory_temperature),
    ("power", |s| &mut s.power),
    ("utilization", |s| &mut s.utilization),
    ("memory-utilization", |s| &mut s.memory_utilization),
    ("memory-used", |s| &mut s.memory_used),
    ("clock-sm", |s| &mut s.clock_sm),
    ("clock-memory", |s| &mut s.clock_memory),
    ("performance-state", |s| &mut s.performance_state),
    ("clock-reasons", |s| &mut s.clock_reasons),
    ("ecc-corrected", |s| &mut s.ecc_corrected),
    ("ecc-uncorrected", |s| &mut s.ecc_uncorrected),
    ("remapped-corrected", |s| &mut s.remapped_corrected),
    ("remapped-uncorrected", |s| &mut s.remapped_uncorrected),
    ("remap-pending", |s| &mut s.remap_pending),
    ("remap-failed", |s| &mut s.remap_failed),
    ("retired-pending", |s| &mut s.retired_pending),
    ("pcie-generation", |s| &mut s.pcie_generation),
    ("pcie-width", |s| &mut s.pcie_width),
    ("pcie-replays", |s| &mut s.pcie_replays),
    ("retired-pages", |s| &mut s.retired_pages),
    ("encoder-utilization", |s| &mut s.encoder_utilization),
    ("decoder-utilization", |s| &mut s.decoder_utilization),
    ("fan-speed", |s| &mut s.fan_speed),
    ("energy", |s| &mut s.energy),
    ("nvlink-errors", |s| &mut s.nvlink_errors),
    ("fabric-state", |s| &mut s.fabric_state),
    ("fabric-status", |s| &mut s.fabric_status),
    ("ecc-corrected-past", |s| &mut s.ecc_corrected_past),
    ("ecc-uncorrected-past", |s| &mut s.ecc_uncorrected_past),
    ("recovery-action", |s| &mut s.recovery_action),
];

// === impl Sensors ===

impl Sensors {
    /// Names of all sensors.
    pub fn sensor_names() -> impl Iterator<Item = &'static str> {
        SENSORS.iter().map(|(name, _)| *name)
    }

    /// Corrected memory errors over the card's lifetime.
    pub fn ever_corrected(&self) -> u64 {
        self.ecc_corrected_past.saturating_add(self.ecc_corrected)
    }

    /// Uncorrected memory errors over the card's lifetime.
    pub fn ever_uncorrected(&self) -> u64 {
        self.ecc_uncorrected_past
            .saturating_add(self.ecc_uncorrected)
    }

    /// Field of the sensor with this name.
    pub fn field(&mut self, name: &str) -> Option<&mut u64> {
        let (_, field) = SENSORS.iter().find(|(known, _)| *known == name)?;
        Some(field(self))
    }
}
