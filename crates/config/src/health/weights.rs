//! The section `health.weights`.

use std::collections::BTreeMap;

use model::{CauseKind, ConditionName, InvalidConditionName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::{At, Section, Word, among, map_by};

/// The effect of a finding, by its tier. One of the tier *present* always takes the device out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TierWeights {
    /// The effect of a finding of the tier *working*.
    pub working: Weight,
    /// The effect of a finding of the tier *performing*.
    pub performing: Weight,
    /// The effect of a finding of the tier *trend*.
    pub trend: Weight,
    /// The effect of a finding of the tier *deep*.
    pub deep: Weight,
    /// Exceptions for single causes: a map from their names.
    #[schemars(schema_with = "causes")]
    pub causes: BTreeMap<CauseKind, Weight>,
    /// Exceptions for single conditions: a map from the names that a vendor gives them.
    pub conditions: BTreeMap<ConditionName, Weight>,
}

/// The effect of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// It takes the device out.
    Out,
    /// It is reported as a warning only.
    Warn,
    /// It is left out of account.
    Off,
}

// === impl TierWeights ===

impl Section for TierWeights {
    fn read(&mut self, at: &mut At<'_>) {
        at.set("working", &mut self.working);
        at.set("performing", &mut self.performing);
        at.set("trend", &mut self.trend);
        at.set("deep", &mut self.deep);
        at.set_by("causes", &mut self.causes, map_by(cause));
        at.set_by("conditions", &mut self.conditions, map_by(condition));
    }
}

impl Default for TierWeights {
    fn default() -> Self {
        Self {
            working: Weight::Out,
            performing: Weight::Warn,
            trend: Weight::Warn,
            deep: Weight::Warn,
            causes: BTreeMap::new(),
            conditions: BTreeMap::new(),
        }
    }
}

impl TierWeights {
    /// The causes that can have a weight of their own: those of the tiers that have one.
    pub const CAUSES: [CauseKind; 10] = [
        CauseKind::Ecc,
        CauseKind::MemoryRepair,
        CauseKind::RecoveryAction,
        CauseKind::Throttled,
        CauseKind::Pcie,
        CauseKind::Link,
        CauseKind::Temperature,
        CauseKind::Condition,
        CauseKind::Trend,
        CauseKind::Deep,
    ];
}

// === impl Weight ===

impl Word for Weight {}

/// A cause by its name in `ostler health`.
fn cause(name: &str) -> Result<CauseKind, (String, String)> {
    let names = TierWeights::CAUSES.map(|cause| format!("{cause:?}"));
    let at = names.iter().position(|known| known == name);
    at.map(|at| TierWeights::CAUSES[at]).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let message = format!("`{name}` is not a cause that can have a weight");
        (message, among(name, "those that can have one are", &names))
    })
}

/// A condition by its name in `ostler health`.
fn condition(name: &str) -> Result<ConditionName, (String, String)> {
    let help = "write a name as `ostler health` shows it, e.g. `conditions: {ras.umc: warn}`";
    let invalid = |error: InvalidConditionName| (error.to_string(), help.to_owned());
    name.parse().map_err(invalid)
}

/// The schema of a map from causes to weights.
fn causes(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "propertyNames": {"enum": TierWeights::CAUSES},
        "additionalProperties": generator.subschema_for::<Weight>(),
    })
}
