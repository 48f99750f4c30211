//! Check of a spec against CDI's rules. All problems are reported at once, each with its place. A
//! container runtime rejects the whole file for a single error.

mod rules;
mod walk;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use self::walk::SpecCursor;
use crate::{CdiSpec, split_kind};

// specs-go/version.go of CDI has the same list, in `validSpecVersions`. No runtime was released that
// reads versions before 0.3.0.
/// Versions of CDI, oldest first.
const VERSIONS: [&str; 8] = [
    "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0",
];

/// Problem in a spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpecProblem {
    /// Place, for example `devices[0].containerEdits.mounts[2].hostPath`; empty for the whole spec.
    pub at: String,
    /// Severity of the problem.
    pub severity: SpecSeverity,
    /// Description, for a person.
    pub text: String,
}

/// Severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpecSeverity {
    /// Container runtimes reject the spec, or containers with its devices do not start.
    Error,
    /// The spec works, but probably not as intended.
    Warning,
}

/// Finds all problems of a spec that was read from JSON or YAML. An empty list means a valid spec.
pub fn check_spec(value: &Value) -> Vec<SpecProblem> {
    let mut problems = Vec::new();
    rules::check_root(&mut SpecCursor::at_root(value, &mut problems));
    problems
}

/// Checks that the declared version has every feature that the spec uses.
fn check_version(at: &mut SpecCursor<'_>, spec: &Value) {
    // CDI's own library does the same: specs-go/version.go, `ValidateVersion`.
    let Some(declared) = spec.get("cdiVersion").and_then(Value::as_str) else {
        return;
    };
    let rank = |version: &str| VERSIONS.iter().position(|known| *known == version);
    let Some(own) = rank(declared.trim_start_matches('v')) else {
        let known = VERSIONS.join(", ");
        at.report_error(
            "cdiVersion",
            format!("`{declared}` is no version of CDI: {known}"),
        );
        return;
    };
    let Ok(typed) = serde_json::from_value::<CdiSpec>(spec.clone()) else {
        return;
    };
    let mut needed = typed.minimum_version();
    if uses(spec, "netDevices") {
        needed = "1.1.0";
    } else if uses(spec, "intelRdt") && rank(needed) < rank("0.7.0") {
        needed = "0.7.0";
    }
    if rank(needed).is_some_and(|needed| own < needed) {
        let text = format!("the spec uses what CDI has since {needed}, but declares {declared}");
        at.report_error("cdiVersion", text);
    }
}

/// True if any edits of the spec have the key.
fn uses(spec: &Value, key: &str) -> bool {
    let devices = spec.get("devices").and_then(Value::as_array);
    let all = devices.into_iter().flatten().chain([spec]);
    let mut edits = all.filter_map(|holder| holder.get("containerEdits"));
    edits.any(|edits| edits.get(key).is_some())
}

/// Describes the problem of a kind; `None` for a valid kind.
fn explain_kind(kind: &str) -> Option<String> {
    split_kind(kind).is_none().then(|| {
        format!(
            "`{kind}` is no kind: write vendor/class, each with letters, digits and `_-.`, a letter \
             first"
        )
    })
}

// === impl SpecProblem ===

impl fmt::Display for SpecProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at.is_empty() {
            true => f.write_str(&self.text),
            false => write!(f, "{}: {}", self.at, self.text),
        }
    }
}

#[cfg(test)]
mod tests;
