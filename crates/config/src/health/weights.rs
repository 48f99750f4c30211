//! Section `health.weights`.

use std::collections::BTreeMap;

use model::{CauseKind, ConditionName, InvalidConditionName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::{Section, SectionReader, Word, among, map_by};

/// Effect of a finding, by its tier. A finding of the tier *present* always takes the device out of
/// service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TierWeights {
    /// Effect of a finding of the tier *working*.
    pub working: Weight,
    /// Effect of a finding of the tier *performing*.
    pub performing: Weight,
    /// Effect of a finding of the tier *trend*.
    pub trend: Weight,
    /// Effect of a finding of the tier *deep*.
    pub deep: Weight,
    /// Exceptions for single causes: a map from the name of a cause to its effect.
    #[schemars(schema_with = "causes")]
    pub causes: BTreeMap<CauseKind, Weight>,
    /// Exceptions for single conditions: a map from the vendor's name of a condition to its effect.
    /// A condition that the driver reports as a warning stays a warning.
    pub conditions: BTreeMap<ConditionName, Weight>,
}

/// Effect of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// The device is taken out of service.
    Out,
    /// The finding is reported as a warning only.
    Warn,
    /// The finding is ignored.
    Off,
}

// === impl TierWeights ===

impl Section for TierWeights {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("working", &mut self.working);
        at.set_option("performing", &mut self.performing);
        at.set_option("trend", &mut self.trend);
        at.set_option("deep", &mut self.deep);
        at.set_by("causes", &mut self.causes, map_by(parse_cause));
        at.set_by("conditions", &mut self.conditions, map_by(parse_condition));
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
    /// Causes that can have a weight of their own. A cause of the tier *present* cannot.
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

/// Parses the name of a cause in `ostler health`. An error is a message and its remedy.
fn parse_cause(name: &str) -> Result<CauseKind, (String, String)> {
    let names = TierWeights::CAUSES.map(|cause| format!("{cause:?}"));
    let at = names.iter().position(|known| known == name);
    at.map(|at| TierWeights::CAUSES[at]).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let message = format!("`{name}` is not a cause that can have a weight");
        (message, among(name, "those that can have one are", &names))
    })
}

/// Parses the name of a condition in `ostler health`. An error is a message and its remedy.
fn parse_condition(name: &str) -> Result<ConditionName, (String, String)> {
    let help = "write a name as `ostler health` shows it, e.g. `conditions: {ras.umc: warn}`";
    let invalid = |error: InvalidConditionName| (error.to_string(), help.to_owned());
    name.parse().map_err(invalid)
}

/// Returns the schema of a map from causes to weights.
fn causes(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "propertyNames": {"enum": TierWeights::CAUSES},
        "additionalProperties": generator.subschema_for::<Weight>(),
    })
}
