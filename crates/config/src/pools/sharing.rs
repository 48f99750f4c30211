//! How a device becomes several units.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::{At, Section, Word, number};

/// How a device is shared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Sharing {
    /// The means; `time-slicing` where only `replicas` is said.
    pub method: Method,
    /// The number of units that a device becomes; 1 where it is not shared.
    #[schemars(range(min = 1, max = Sharing::MOST))]
    pub replicas: u32,
    /// Gives a container at most one of them.
    pub one_per_request: bool,
    /// Puts the units of one container on different cards.
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

impl Section for Sharing {
    fn read(&mut self, at: &mut At<'_>) {
        at.set("method", &mut self.method);
        at.set_by("replicas", &mut self.replicas, number(1..=Self::MOST));
        at.set("onePerRequest", &mut self.one_per_request);
        at.set("distinct", &mut self.distinct);
        if at.place("method").is_none() && self.replicas > 1 {
            self.method = Method::TimeSlicing;
        }
    }
}

impl Sharing {
    /// The most units a device can become. A list with many more is too long for the kubelet.
    pub const MOST: u32 = 4096;
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
