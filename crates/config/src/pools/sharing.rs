//! Section `sharing` of a pool: one device as several units.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::{Section, SectionReader, Word, number_within};

/// Sharing of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Sharing {
    /// Method of sharing. Default: `time-slicing` if `replicas` is more than 1, else `none`.
    pub method: Method,
    /// Number of units that a device becomes. 1 if it is not shared.
    #[schemars(range(min = 1, max = Sharing::MOST))]
    pub replicas: u32,
    /// Gives a container at most one unit.
    pub one_per_request: bool,
    /// Puts the units of one container on different cards.
    pub distinct: Distinct,
}

/// Method by which a device is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The device is not shared.
    None,
    /// Containers take turns on the device. There is no memory isolation between them.
    TimeSlicing,
    /// Containers use the device at the same time, through NVIDIA's MPS control daemon.
    Mps,
    /// MPS where card and daemon support it, else time-slicing.
    Auto,
}

/// Rule for units of one container on different cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Distinct {
    /// The units must be on different cards. A request for which that is impossible is refused.
    Require,
    /// The units are on different cards where that is possible.
    #[default]
    Prefer,
    /// The units may be on the same card.
    Off,
}

// === impl Sharing ===

impl Section for Sharing {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("method", &mut self.method);
        at.set_by(
            "replicas",
            &mut self.replicas,
            number_within(1..=Self::MOST),
        );
        at.set_option("onePerRequest", &mut self.one_per_request);
        at.set_option("distinct", &mut self.distinct);
        if at.option_place("method").is_none() && self.replicas > 1 {
            self.method = Method::TimeSlicing;
        }
    }
}

impl Sharing {
    /// Largest number of units that a device can become.
    // The kubelet's client has grpc-go's default limit of 4 MiB for a message
    // (pkg/kubelet/cm/devicemanager/plugin/v1beta1/client.go sets no other). A longer list ends the
    // stream. 4 MiB is roughly 60,000 units with short ids: 14 cards with this number of units.
    pub const MOST: u32 = 4096;
}

impl Default for Sharing {
    /// Returns the sharing of a device that is not shared.
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
