//! What is done with exclusive devices between their allocation and the start of a container.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Period, source::Word};

/// What is done with a device before a container starts on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreStart {
    /// What.
    #[serde(rename = "preStart")]
    pub mode: PreStartMode,
    /// The command to run, with its arguments. None with `reset`: NVIDIA's.
    #[serde(rename = "preStartCommand", skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// How long it may take in all; the kubelet waits for 30 s.
    #[serde(rename = "preStartLimit", with = "Period")]
    pub limit: Duration,
}

/// What can be done with a device before a container starts on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PreStartMode {
    /// Nothing.
    #[default]
    Off,
    /// A device that somebody else uses is refused.
    Check,
    /// The start waits until nobody else uses the device.
    Wait,
    /// The device is reset if nobody computes on it, by NVIDIA's command or one of the user's.
    Reset,
    /// A command of the user's prepares the device.
    Exec,
}

// === impl PreStart ===

impl PreStart {
    /// The longest limit: the kubelet gives up after 30 s.
    pub const MOST: Duration = Duration::from_secs(25);
}

impl Default for PreStart {
    fn default() -> Self {
        Self {
            mode: PreStartMode::Off,
            command: Vec::new(),
            limit: Self::MOST,
        }
    }
}

// === impl PreStartMode ===

impl Word for PreStartMode {}

impl PreStartMode {
    /// Whether a command is run.
    pub fn runs(self) -> bool {
        matches!(self, Self::Reset | Self::Exec)
    }
}
