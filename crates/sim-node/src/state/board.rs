//! What is printed on a board or burnt into it: facts that tools show and nothing depends on.

use serde::{Deserialize, Serialize};

/// Facts of a board; what is left out the driver calls unsupported, or follows from the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Board {
    /// The version of its firmware, e.g. `92.00.45.00.03`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vbios: Option<String>,
    /// The part number, e.g. `692-2G506-0200-002`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_number: Option<String>,
    /// The version of the infoROM's image, e.g. `G506.0200.00.04`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inforom: Option<String>,
    /// The width of the memory bus in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus_width: Option<u32>,
    /// CUDA cores; from the multiprocessors where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Fans; data centre boards have none.
    pub fans: u32,
    /// Lanes of the PCIe connector; sixteen where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_width: Option<u32>,
}

// === impl Board ===

impl Board {
    /// Whether nothing is known.
    pub(crate) fn blank(&self) -> bool {
        *self == Self::default()
    }
}
