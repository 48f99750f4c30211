//! How verdicts are made: what is checked how often, what weighs how much, and how a device comes
//! back.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use model::CauseKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::{Period, Thresholds, Xids, period::PeriodOrOff, source::Word};

/// How verdicts are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// How long a card that does not answer is Unknown before it is Unhealthy.
    #[serde(with = "Period")]
    pub unanswered_grace: Duration,
    /// How long a card that is gone stays listed as Unhealthy.
    #[serde(with = "Period")]
    pub gone_grace: Duration,
    /// What the kubelet is told of a device that cannot be judged.
    pub unknown: UnknownAs,
    /// What becomes of the devices of a probe that does not run.
    pub on_monitor_loss: MonitorLoss,
    /// How long a probe may be down before [`MonitorLoss::Drain`] takes its devices out.
    #[serde(with = "Period")]
    pub monitor_loss_grace: Duration,
    /// Over what time a check has to pass before its cause ends.
    #[serde(with = "Period")]
    pub hold_down: Duration,
    /// The longest that a cause that keeps coming back is held.
    #[serde(with = "Period")]
    pub hold_down_limit: Duration,
    /// Trouble that did not begin for this long is forgotten: the hold-down is the first again.
    #[serde(with = "Period")]
    pub hold_down_memory: Duration,
    /// How often in a row a check has to pass before its cause ends.
    pub passes: u32,
    /// How long a device is withheld that was not clean when a container was about to start.
    #[serde(with = "Period")]
    pub residue_hold: Duration,
    /// How often each tier is checked; `None` is never. The tier *present* is the probe's period.
    #[serde(flatten)]
    pub periods: Periods,
    /// The command of the tier *deep*, with its arguments; none at all: the tier is off.
    pub deep_command: Vec<String>,
    /// How long that command may take for a card.
    #[serde(with = "Period")]
    pub deep_limit: Duration,
    /// What a finding of each tier does.
    pub weights: TierWeights,
    /// Where a value becomes a finding.
    pub thresholds: Thresholds,
    /// What XIDs mean.
    #[serde(flatten)]
    pub xids: Xids,
    /// Where verdicts are kept over a restart; `None`: nowhere.
    #[serde(with = "PathOrOff")]
    pub state_file: Option<PathBuf>,
}

/// A path, or `off`: a form for serde alone.
struct PathOrOff;

/// How often each tier is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Periods {
    /// Does it work.
    #[serde(with = "PeriodOrOff")]
    pub working: Option<Duration>,
    /// Does it work as well as it could.
    #[serde(with = "PeriodOrOff")]
    pub performing: Option<Duration>,
    /// Is it getting worse.
    #[serde(with = "PeriodOrOff")]
    pub trend: Option<Duration>,
    /// What the user's command says.
    #[serde(with = "PeriodOrOff")]
    pub deep: Option<Duration>,
}

/// What a finding of each tier does. One of the tier *present* always takes the device out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TierWeights {
    /// Of *working*.
    pub working: Weight,
    /// Of *performing*.
    pub performing: Weight,
    /// Of *trend*.
    pub trend: Weight,
    /// Of *deep*.
    pub deep: Weight,
    /// What single causes do, where that is not what their tier says.
    pub causes: BTreeMap<CauseKind, Weight>,
}

/// What a finding does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// It takes the device out.
    Out,
    /// It is told.
    Warn,
    /// It is left out of account.
    Off,
}

/// What becomes of the devices of a probe that does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MonitorLoss {
    /// They stay Unknown.
    Keep,
    /// They are taken out after a grace.
    Drain,
}

/// What the kubelet is told of a device that cannot be judged.
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

impl Health {
    /// The name of the state file in the kubelet's device plugin folder.
    pub const STATE_FILE: &str = "ostler-state.json";
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
            weights: TierWeights::default(),
            thresholds: Thresholds::default(),
            xids: Xids::default(),
            state_file: Some(PathBuf::from(crate::Config::KUBELET_DIR).join(Self::STATE_FILE)),
        }
    }
}

// === impl PathOrOff ===

impl PathOrOff {
    fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        match path {
            Some(path) => path.serialize(serializer),
            None => serializer.serialize_str("off"),
        }
    }
}

// === impl Periods ===

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

// === impl TierWeights ===

impl Default for TierWeights {
    fn default() -> Self {
        Self {
            working: Weight::Out,
            performing: Weight::Warn,
            trend: Weight::Warn,
            deep: Weight::Warn,
            causes: BTreeMap::new(),
        }
    }
}

impl TierWeights {
    /// The causes that can have a weight of their own: those of the tiers that have one.
    pub const CAUSES: [CauseKind; 11] = [
        CauseKind::Ecc,
        CauseKind::RowRemap,
        CauseKind::PageRetirement,
        CauseKind::Fabric,
        CauseKind::RecoveryAction,
        CauseKind::Throttled,
        CauseKind::Pcie,
        CauseKind::NvLink,
        CauseKind::Temperature,
        CauseKind::Trend,
        CauseKind::Deep,
    ];
}

// === impl Weight ===

impl Word for Weight {}

// === impl MonitorLoss ===

impl Word for MonitorLoss {}

// === impl UnknownAs ===

impl Word for UnknownAs {}
