//! Whether a spec is one: CDI's own rules, all that is broken at once, each with its place. A
//! runtime throws a whole file away for any of the errors.

mod rules;
mod walk;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use self::walk::At;
use crate::{Spec, split_kind};

/// The versions of CDI, oldest first. Before 0.3.0 nothing was released that runtimes read.
const VERSIONS: [&str; 8] = [
    "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0",
];

/// Something that is wrong with a spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where: `devices[0].containerEdits.mounts[2].hostPath`; empty for the whole.
    pub at: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub text: String,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Runtimes do not take the spec, or containers do not start.
    Error,
    /// It works, but probably not as meant.
    Warning,
}

/// Everything that is wrong with a spec, as it was read from JSON or YAML.
pub fn check(value: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    rules::spec(&mut At::root(value, &mut problems));
    problems
}

/// The version that a spec declares, against what it uses.
fn version(at: &mut At<'_>, spec: &Value) {
    let Some(declared) = spec.get("cdiVersion").and_then(Value::as_str) else {
        return;
    };
    let rank = |version: &str| VERSIONS.iter().position(|known| *known == version);
    let Some(own) = rank(declared.trim_start_matches('v')) else {
        let known = VERSIONS.join(", ");
        at.error(
            "cdiVersion",
            format!("`{declared}` is no version of CDI: {known}"),
        );
        return;
    };
    let Ok(typed) = serde_json::from_value::<Spec>(spec.clone()) else {
        return;
    };
    let mut needed = typed.version();
    if uses(spec, "netDevices") {
        needed = "1.1.0";
    } else if uses(spec, "intelRdt") && rank(needed) < rank("0.7.0") {
        needed = "0.7.0";
    }
    if rank(needed).is_some_and(|needed| own < needed) {
        let text = format!("the spec uses what CDI has since {needed}, but declares {declared}");
        at.error("cdiVersion", text);
    }
}

/// Whether any edits of a spec have a key.
fn uses(spec: &Value, key: &str) -> bool {
    let devices = spec.get("devices").and_then(Value::as_array);
    let all = devices.into_iter().flatten().chain([spec]);
    let mut edits = all.filter_map(|holder| holder.get("containerEdits"));
    edits.any(|edits| edits.get(key).is_some())
}

/// What is wrong with a kind.
fn kind(kind: &str) -> Option<String> {
    split_kind(kind).is_none().then(|| {
        format!(
            "`{kind}` is no kind: write vendor/class, each with letters, digits and `_-.`, a letter \
             first"
        )
    })
}

// === impl Problem ===

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at.is_empty() {
            true => f.write_str(&self.text),
            false => write!(f, "{}: {}", self.at, self.text),
        }
    }
}

#[cfg(test)]
mod tests;
