//! Facts of a board that tools show and no behaviour depends on.

use serde::{Deserialize, Serialize};

/// Facts of a board. NVML calls an absent fact unsupported, or derives it from the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Board {
    /// Version of the VBIOS, e.g. `92.00.45.00.03`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vbios: Option<String>,
    /// Part number, e.g. `692-2G506-0200-002`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_number: Option<String>,
    /// Version of the infoROM image, e.g. `G506.0200.00.04`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inforom: Option<String>,
    /// Width of the memory bus in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus_width: Option<u32>,
    /// Number of CUDA cores; derived from the multiprocessors if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Number of fans; data centre boards have none.
    pub fans: u32,
    /// Lanes of the PCIe connector; 16 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_width: Option<u32>,
}

// === impl Board ===

impl Board {
    /// True if no fact is set (for `skip_serializing_if`).
    pub(crate) fn blank(&self) -> bool {
        *self == Self::default()
    }
}
