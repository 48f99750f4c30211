//! What a card measures and counts, and the names by which the commands move it.

use serde::{Deserialize, Serialize};

/// What a card measures and counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sensors {
    /// Core, in degrees.
    pub temperature: u64,
    /// Memory, in degrees; zero where it is not measured.
    pub memory_temperature: u64,
    /// In milliwatts.
    pub power: u64,
    /// Busy engines in per cent.
    pub utilization: u64,
    /// Busy memory in per cent.
    pub memory_utilization: u64,
    /// In MiB.
    pub memory_used: u64,
    /// Multiprocessor clock in MHz.
    pub clock_sm: u64,
    /// Memory clock in MHz.
    pub clock_memory: u64,
    /// NVML's performance state.
    pub performance_state: u64,
    /// NVML's clock event reasons, as a mask.
    pub clock_reasons: u64,
    /// Corrected memory errors.
    pub ecc_corrected: u64,
    /// Uncorrected memory errors.
    pub ecc_uncorrected: u64,
    /// Rows replaced after corrected errors.
    pub remapped_corrected: u64,
    /// Rows replaced after uncorrected errors.
    pub remapped_uncorrected: u64,
    /// Whether a row waits for a reset to be replaced.
    pub remap_pending: u64,
    /// Whether a row could not be replaced.
    pub remap_failed: u64,
    /// Whether pages wait for a reboot to be retired.
    pub retired_pending: u64,
    /// The PCIe generation in use.
    pub pcie_generation: u64,
    /// The PCIe lanes in use.
    pub pcie_width: u64,
    /// PCIe replays.
    pub pcie_replays: u64,
    /// Pages retired after uncorrected errors.
    pub retired_pages: u64,
    /// Busy encoders in per cent.
    pub encoder_utilization: u64,
    /// Busy decoders in per cent.
    pub decoder_utilization: u64,
    /// Fans, in per cent of their highest speed.
    pub fan_speed: u64,
    /// Energy used since the last reset, in millijoules; zero lets it grow with the time since then.
    pub energy: u64,
    /// Errors of all NVLinks.
    pub nvlink_errors: u64,
    /// Where it stands with its fabric, as NVML numbers it: 1 not begun, 2 under way; 0 and 3 are
    /// the end.
    pub fabric_state: u64,
    /// How joining the fabric ended, as an NVML code; zero is well.
    pub fabric_status: u64,
    /// Corrected memory errors before the last reset.
    pub ecc_corrected_past: u64,
    /// Uncorrected memory errors before the last reset.
    pub ecc_uncorrected_past: u64,
    /// What NVML says must be done to recover the card, as its number: 1 is a reset, 2 a reboot,
    /// 4 draining and a reset.
    pub recovery_action: u64,
}

/// A sensor's name and where it is kept.
type Sensor = (&'static str, fn(&mut Sensors) -> &mut u64);

/// The names that [`Sensors::field`] knows.
const SENSORS: [Sensor; 31] = [
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
    /// The names of all sensors.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SENSORS.iter().map(|(name, _)| *name)
    }

    /// Corrected memory errors since the card was made.
    pub fn ever_corrected(&self) -> u64 {
        self.ecc_corrected_past.saturating_add(self.ecc_corrected)
    }

    /// Uncorrected memory errors since the card was made.
    pub fn ever_uncorrected(&self) -> u64 {
        self.ecc_uncorrected_past
            .saturating_add(self.ecc_uncorrected)
    }

    /// The sensor of this name.
    pub fn field(&mut self, name: &str) -> Option<&mut u64> {
        let (_, field) = SENSORS.iter().find(|(known, _)| *known == name)?;
        Some(field(self))
    }
}
