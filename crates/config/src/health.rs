//! Section `health`: rules for verdicts.

mod weights;

use std::{path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

pub use self::weights::{TierWeights, Weight};
use crate::{
    Period, Thresholds,
    period::PeriodOrOff,
    schema::OneOrMany,
    source::{
        FileItem, FromNode, ReadNotes, Section, SectionReader, Word, number_within, read_command,
    },
};

/// Longest command for deep checks, in bytes.
// Linux takes 128 KiB in one argument (MAX_ARG_STRLEN, include/uapi/linux/binfmts.h, with pages of
// 4 KiB). The line of settings that brings the command to the probe may have 64 KiB
// (`probe::protocol::CONFIGURE_LIMIT`), and JSON escapes need room in it.
const COMMAND_LIMIT: usize = 32 << 10;

/// Rules for verdicts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Health {
    /// Time for which a card that does not answer is Unknown before it is Unhealthy.
    #[serde(with = "Period")]
    pub unanswered_grace: Duration,
    /// Time for which a card that has disappeared stays listed as Unhealthy.
    #[serde(with = "Period")]
    pub gone_grace: Duration,
    /// State that the kubelet is told for a device that is Unknown.
    pub unknown: UnknownAs,
    /// Treatment of the devices of a probe that does not run.
    pub on_monitor_loss: MonitorLoss,
    /// Time for which a probe may be down before `drain` takes its devices out of service.
    #[serde(with = "Period")]
    pub monitor_loss_grace: Duration,
    /// Time over which a check must pass before its cause ends. It doubles with each recurrence.
    #[serde(with = "Period")]
    pub hold_down: Duration,
    /// Longest hold-down of a recurring cause. Not shorter than `holdDown`.
    #[serde(with = "Period")]
    pub hold_down_limit: Duration,
    /// Time without a recurrence after which earlier ones no longer count: the hold-down is
    /// `holdDown` again.
    #[serde(with = "Period")]
    pub hold_down_memory: Duration,
    /// Number of passes in a row, of a check of the tier *present*, before its cause ends.
    #[schemars(range(min = 1, max = 100))]
    pub passes: u32,
    /// Time for which a device is withheld that `preStart` found in use before a container
    /// started. It doubles with each recurrence.
    #[serde(with = "Period")]
    pub residue_hold: Duration,
    /// Times between two checks of each tier. The tier *present* is checked every `probe.period`.
    #[serde(flatten)]
    pub periods: Periods,
    /// Command of the tier *deep*: a text for `/bin/sh -c`, or a list of a program and its
    /// arguments. An empty list switches the tier off.
    #[schemars(with = "OneOrMany<String>")]
    pub deep_command: Vec<String>,
    /// Longest time that `deepCommand` may take for one card. After that the check has failed.
    #[serde(with = "Period")]
    pub deep_limit: Duration,
    /// Time for which an event that a program caused is shown as a warning.
    #[serde(with = "Period")]
    pub event_warning: Duration,
    /// Effect of a finding, by its tier.
    pub weights: TierWeights,
    /// Limits at which a value becomes a finding.
    pub thresholds: Thresholds,
    /// File in which verdicts are kept across restarts of the agent, or `off`. Default:
    /// `ostler-state.json` in `kubelet.dir`.
    #[serde(with = "PathOrOff")]
    pub state_file: Option<PathBuf>,
}

// No value of this type is made: it names the reader, the writer and the schema of an
// `Option<PathBuf>`.
/// Path, or `off`.
#[derive(JsonSchema)]
#[schemars(with = "String")]
struct PathOrOff;

/// Times between two checks of each tier. `None`, written `off`, is never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Periods {
    /// Time between two checks of the tier *working* (the card works), or `off`.
    #[serde(with = "PeriodOrOff")]
    pub working: Option<Duration>,
    /// Time between two checks of the tier *performing* (the card is as fast as it can be), or
    /// `off`.
    #[serde(with = "PeriodOrOff")]
    pub performing: Option<Duration>,
    /// Time between two checks of the tier *trend* (the card is getting worse), or `off`.
    #[serde(with = "PeriodOrOff")]
    pub trend: Option<Duration>,
    /// Time between two runs of `deepCommand`, or `off`.
    #[serde(with = "PeriodOrOff")]
    pub deep: Option<Duration>,
}

/// Treatment of the devices of a probe that does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MonitorLoss {
    /// The devices stay Unknown.
    Keep,
    /// The devices are taken out of service after `monitorLossGrace`.
    Drain,
}

/// State that the kubelet is told for a device that is Unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnknownAs {
    /// Healthy.
    #[default]
    Healthy,
    /// Unhealthy.
    Unhealthy,
}

// === impl Health ===

impl Section for Health {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("unansweredGrace", &mut self.unanswered_grace);
        at.set_option("goneGrace", &mut self.gone_grace);
        at.set_option("unknown", &mut self.unknown);
        at.set_option("onMonitorLoss", &mut self.on_monitor_loss);
        at.set_option("monitorLossGrace", &mut self.monitor_loss_grace);
        at.set_option("holdDown", &mut self.hold_down);
        at.set_option("holdDownLimit", &mut self.hold_down_limit);
        at.set_option("holdDownMemory", &mut self.hold_down_memory);
        at.set_by("passes", &mut self.passes, number_within(1..=100));
        at.set_option("residueHold", &mut self.residue_hold);
        self.periods.read_options(at);
        at.set_by("deepCommand", &mut self.deep_command, read_command);
        at.set_option("deepLimit", &mut self.deep_limit);
        at.set_option("eventWarning", &mut self.event_warning);
        at.set_section("weights", &mut self.weights);
        at.set_section("thresholds", &mut self.thresholds);
        at.set_by(
            "stateFile",
            &mut self.state_file,
            PathOrOff::read_path_or_off,
        );
        self.check_options(at);
    }
}

impl Health {
    /// Name of the state file in the kubelet's device plugin folder.
    pub const STATE_FILE: &str = "ostler-state.json";

    fn check_options(&self, at: &mut SectionReader<'_>) {
        let least = Period::from(self.hold_down);
        if at.option_place("holdDownLimit").is_some() && least.as_duration() > self.hold_down_limit
        {
            let message =
                format!("it is shorter than `holdDown`, which it limits and which is {least}");
            let help = "write a longer time, or a shorter `holdDown`";
            at.note_option_error("holdDownLimit", message, help);
        }
        let length: usize = self.deep_command.iter().map(String::len).sum();
        if length > COMMAND_LIMIT {
            let message = format!("the command has {length} bytes, and may have {COMMAND_LIMIT}");
            at.note_option_error("deepCommand", message, "put it into a file, and name that");
        }
        // Without a command the options of the tier have no effect. Probably the command was
        // forgotten.
        let runs = self.periods.deep.is_some();
        for (key, counts) in [("deep", runs), ("deepLimit", true)] {
            if counts && at.option_place(key).is_some() && at.option_place("deepCommand").is_none()
            {
                let message = "the tier runs a command of yours, and none is named";
                let help = "write `deepCommand: [PROGRAM, ARGUMENT]`, or remove this";
                at.note_option_error(key, message, help);
            }
        }
    }
}

impl Default for Health {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            unanswered_grace: seconds(30),
            gone_grace: seconds(300),
            unknown: UnknownAs::Healthy,
            on_monitor_loss: MonitorLoss::Keep,
            monitor_loss_grace: seconds(120),
            hold_down: seconds(20),
            hold_down_limit: seconds(900),
            hold_down_memory: seconds(3600),
            passes: 3,
            residue_hold: seconds(30),
            periods: Periods::default(),
            deep_command: Vec::new(),
            deep_limit: seconds(600),
            event_warning: seconds(300),
            weights: TierWeights::default(),
            thresholds: Thresholds::default(),
            state_file: Some(PathBuf::from(crate::Config::KUBELET_DIR).join(Self::STATE_FILE)),
        }
    }
}

// === impl PathOrOff ===

impl PathOrOff {
    fn read_path_or_off(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Option<PathBuf>> {
        let path = PathBuf::from_node(item, notes)?;
        Some((path.as_os_str() != "off").then_some(path))
    }

    fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        match path {
            Some(path) => path.serialize(serializer),
            None => serializer.serialize_str("off"),
        }
    }
}

// === impl Periods ===

impl Section for Periods {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_by(
            "working",
            &mut self.working,
            PeriodOrOff::read_period_or_off,
        );
        at.set_by(
            "performing",
            &mut self.performing,
            PeriodOrOff::read_period_or_off,
        );
        at.set_by("trend", &mut self.trend, PeriodOrOff::read_period_or_off);
        at.set_by("deep", &mut self.deep, PeriodOrOff::read_period_or_off);
    }
}

impl Default for Periods {
    fn default() -> Self {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        Self {
            working: seconds(60),
            performing: seconds(300),
            trend: seconds(900),
            deep: seconds(3600),
        }
    }
}

// === impl MonitorLoss ===

impl Word for MonitorLoss {}

// === impl UnknownAs ===

impl Word for UnknownAs {}
