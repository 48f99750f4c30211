//! Keys `preStart*` of a pool: actions on exclusive devices between allocation and start of a
//! container.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Period,
    schema::OneOrMany,
    source::{Section, SectionReader, Word, read_command},
};

/// Action before a container starts on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default)]
pub struct PreStart {
    /// Action before a container starts on a device.
    #[serde(rename = "preStart")]
    pub mode: PreStartMode,
    /// Command for `reset` and `exec`: a text for `/bin/sh -c`, or a list of a program and its
    /// arguments. Without one, `reset` runs the vendor's, e.g. `nvidia-smi --gpu-reset`.
    #[schemars(with = "OneOrMany<String>")]
    #[serde(rename = "preStartCommand", skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Longest time for the whole action, at most 25 s: the kubelet waits for 30 s.
    #[serde(rename = "preStartLimit", with = "Period")]
    pub limit: Duration,
}

/// Action before a container starts on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PreStartMode {
    /// No action.
    #[default]
    Off,
    /// A device that is still in use is refused.
    Check,
    /// The start waits until the device is no longer in use.
    Wait,
    /// The device is reset if no process computes on it, by the vendor's command or one of the
    /// user's, and then checked as with `check`.
    Reset,
    /// A command of the user's prepares the device, which is then checked as with `check`.
    Exec,
}

// === impl PreStart ===

impl Section for PreStart {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("preStart", &mut self.mode);
        at.set_by("preStartCommand", &mut self.command, read_command);
        at.set_option("preStartLimit", &mut self.limit);
        self.check_command(at);
        self.check_limit(at);
    }
}

impl PreStart {
    /// Longest limit.
    // The kubelet ends the call PreStartContainer after 30 s, and the pod fails
    // (KubeletPreStartContainerRPCTimeoutInSecs; pkg/kubelet/cm/devicemanager/endpoint.go,
    // preStartContainer). The other 5 s are for the agent's answer.
    pub const MOST: Duration = Duration::from_secs(25);

    fn check_command(&self, at: &mut SectionReader<'_>) {
        if self.mode == PreStartMode::Exec && self.command.is_empty() {
            let message = "`preStartCommand` is missing: this runs a command of yours";
            let help = "write it, e.g. `preStartCommand: prepare-gpu $OSTLER_DEVICE_PCI`";
            at.note_option_error("preStart", message, help);
        } else if !self.mode.runs() && at.option_place("preStartCommand").is_some() {
            let message = "no command is run with this `preStart`";
            let help = "write `preStart: exec`, or remove the command";
            at.note_option_error("preStartCommand", message, help);
        }
    }

    fn check_limit(&self, at: &mut SectionReader<'_>) {
        if self.limit > Self::MOST {
            let message = "the kubelet waits for 30 s and no longer";
            at.note_option_error("preStartLimit", message, "write at most 25s");
        } else if self.mode == PreStartMode::Off && self.limit != Self::MOST {
            let message = "nothing is done that it could limit";
            let help = "write `preStart: wait`, or remove it";
            at.note_option_error("preStartLimit", message, help);
        }
    }
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
    /// Returns true if the action runs a command.
    pub fn runs(self) -> bool {
        matches!(self, Self::Reset | Self::Exec)
    }
}
