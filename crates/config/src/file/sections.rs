//! The sections of `ostler.yaml` that are not about pools.

use std::{collections::BTreeMap, path::PathBuf};

use model::CauseKind;
use schemars::JsonSchema;

use super::OneOrMany;
use crate::{
    MonitorLoss, NumberOrOff, Period, PeriodOrOff, TierWeights, UnknownAs, Weight, XidAction,
    XidBase, XidSet, source::Said,
};

/// How verdicts are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HealthFile {
    /// How long a card that does not answer is Unknown before it is Unhealthy.
    pub unanswered_grace: Option<Said<Period>>,
    /// How long a card that is gone stays listed as Unhealthy.
    pub gone_grace: Option<Said<Period>>,
    /// What the kubelet is told of a device that cannot be judged.
    pub unknown: Option<Said<UnknownAs>>,
    /// What becomes of the devices of a probe that does not run.
    pub on_monitor_loss: Option<Said<MonitorLoss>>,
    /// How long a probe may be down before `drain` takes its devices out.
    pub monitor_loss_grace: Option<Said<Period>>,
    /// Over what time a check has to pass before its cause ends.
    pub hold_down: Option<Said<Period>>,
    /// The longest that a cause that keeps coming back is held.
    pub hold_down_limit: Option<Said<Period>>,
    /// Trouble that did not begin for this long is forgotten: the hold-down is the first again.
    pub hold_down_memory: Option<Said<Period>>,
    /// How often in a row a check has to pass before its cause ends.
    #[schemars(range(min = 1, max = 100))]
    pub passes: Option<Said<u32>>,
    /// How long a device is withheld that was not clean when a container was about to start.
    pub residue_hold: Option<Said<Period>>,
    /// The time between two checks of the tier *working*, or `off`.
    pub working: Option<Said<PeriodOrOff>>,
    /// The same of the tier *performing*.
    pub performing: Option<Said<PeriodOrOff>>,
    /// The same of the tier *trend*.
    pub trend: Option<Said<PeriodOrOff>>,
    /// The same of the tier *deep*.
    pub deep: Option<Said<PeriodOrOff>>,
    /// The command of the tier *deep*: a text for `/bin/sh -c`, or a program and its arguments.
    #[schemars(with = "Option<OneOrMany<String>>")]
    pub deep_command: Option<Said<Vec<String>>>,
    /// How long that command may take for a card.
    pub deep_limit: Option<Said<Period>>,
    /// What a finding of each tier does.
    pub weights: WeightsFile,
    /// Where a value becomes a finding.
    pub thresholds: ThresholdsFile,
    /// What XIDs mean where nothing else is said: what our table says, or NVIDIA's device plugin.
    pub xid_base: Option<Said<XidBase>>,
    /// What single XIDs mean: a map from numbers.
    #[schemars(with = "Option<std::collections::BTreeMap<String, XidAction>>")]
    pub xids: Option<Said<BTreeMap<u32, XidAction>>>,
    /// What an XID means that the table does not have.
    pub unknown_xids: Option<Said<XidAction>>,
    /// XIDs that say nothing about a card's health: `all`, or numbers.
    pub ignore_xids: Option<Said<XidSet>>,
    /// XIDs that count although they usually do not: `all`, or numbers. They win.
    pub heed_xids: Option<Said<XidSet>>,
    /// Where verdicts are kept over a restart of the agent, or `off`.
    pub state_file: Option<Said<PathBuf>>,
}

/// What a finding of each tier does.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WeightsFile {
    /// Of *working*.
    pub working: Option<Said<Weight>>,
    /// Of *performing*.
    pub performing: Option<Said<Weight>>,
    /// Of *trend*.
    pub trend: Option<Said<Weight>>,
    /// Of *deep*.
    pub deep: Option<Said<Weight>>,
    /// Of single causes, where that is not what their tier says: a map from their names.
    #[schemars(schema_with = "causes")]
    pub causes: Option<Said<BTreeMap<CauseKind, Weight>>>,
}

/// Where a value becomes a finding; `off` switches a check off.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ThresholdsFile {
    /// Memory errors that were not repaired and are tolerated.
    pub ecc_uncorrected: Option<Said<u32>>,
    /// How long a device may take to join its fabric.
    pub fabric_join: Option<Said<Period>>,
    /// How close to where the hardware slows down a temperature may come, in degrees.
    pub temperature_margin: Option<Said<u32>>,
    /// From which utilization on a low PCIe generation counts.
    pub busy_percent: Option<Said<u32>>,
    /// NVLink errors between two check-ups that are tolerated.
    pub nvlink_errors: Option<Said<u32>>,
    /// Repaired memory errors in an hour that are tolerated.
    pub ecc_corrected_per_hour: Option<Said<NumberOrOff>>,
    /// Rows remapped in an hour that are tolerated.
    pub remapped_rows_per_hour: Option<Said<NumberOrOff>>,
    /// PCIe replays in an hour that are tolerated.
    pub pcie_replays_per_hour: Option<Said<NumberOrOff>>,
    /// Mean power in watts that is tolerated.
    pub mean_watts: Option<Said<NumberOrOff>>,
    /// The shortest time over which a mean power counts.
    pub mean_time: Option<Said<Period>>,
}

/// The schema of a map from causes to weights.
fn causes(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": ["object", "null"],
        "propertyNames": {"enum": TierWeights::CAUSES},
        "additionalProperties": generator.subschema_for::<Weight>(),
    })
}
