//! How a device becomes several units.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::Word;

/// How a device is shared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sharing {
    /// By which means.
    pub method: Method,
    /// How many units a device becomes; 1 where it is not shared.
    pub replicas: u32,
    /// Whether a container may have only one of them.
    pub one_per_request: bool,
    /// Whether the units of one container must be on different cards.
    pub distinct: Distinct,
}

/// By which means a device is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Not at all.
    None,
    /// Containers take turns; nothing keeps them from each other's memory.
    TimeSlicing,
    /// Through the MPS control daemon.
    Mps,
    /// MPS where card and daemon can, else time-slicing.
    Auto,
}

/// Whether the units of one container must be on different cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Distinct {
    /// They must; a request that cannot be met so is refused.
    Require,
    /// Where that is possible.
    #[default]
    Prefer,
    /// It does not matter.
    Off,
}

// === impl Sharing ===

impl Sharing {
    /// The most units a device can become. A list with many more is too long for the kubelet.
    pub const MOST: u32 = 4096;
    /// The most units a device can become that is shared through MPS: no card has more clients.
    pub const MOST_MPS: u32 = 48;
}

impl Default for Sharing {
    /// Not shared.
    fn default() -> Self {
        Self {
            method: Method::None,
            replicas: 1,
            one_per_request: false,
            distinct: Distinct::default(),
        }
    }
}

// === impl Method ===

impl Word for Method {}

// === impl Distinct ===

impl Word for Distinct {}
