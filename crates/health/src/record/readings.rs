//! Makes the checks of a reading.

mod conditions;
mod counters;
mod performing;
mod working;

use model::{Deep, Reading, Values};

pub(super) use self::counters::Counters;
use super::Record;
use crate::{Check, Now, Policy};

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Finding {
    /// The check failed. Contains the evidence.
    Bad(String),
    /// The check passed.
    Good,
    /// The values do not decide: the state stays what it was.
    Open,
    /// A value that the check needs was not read.
    Unread,
}

// === impl Finding ===

impl Finding {
    /// Checks a flag that must not be set.
    fn flag(value: Option<bool>, evidence: &str) -> Self {
        match value {
            Some(true) => Self::Bad(evidence.to_owned()),
            Some(false) => Self::Good,
            None => Self::Unread,
        }
    }
}

// === impl Record ===

impl Record {
    /// Makes all checks of a reading, conditions included.
    pub(super) fn examine(&mut self, reading: &Reading, policy: &Policy, now: Now) {
        let tier = reading.values.tier();
        match reading.unsupported.as_slice() {
            [] => drop(self.unsupported.remove(&tier)),
            names => drop(self.unsupported.insert(tier, names.to_vec())),
        }
        let (thresholds, link_errors) = (&policy.health.thresholds, self.counters.link_errors);
        let findings = match &reading.values {
            Values::Working(values) => {
                if let Some(action) = values.recovery {
                    self.ask(action != model::RecoveryAction::None, policy);
                }
                working::findings(values, thresholds)
            }
            Values::Performing(values) => {
                performing::findings(values, &mut self.counters, thresholds)
            }
            Values::Trend(values) => self.counters.findings(values, thresholds, now),
            Values::Deep(values) => vec![(Check::Deep, deep(values))],
        };
        // The next agent compares with this count.
        self.unsaved |= link_errors.is_some() && self.counters.link_errors != link_errors;
        for (check, finding) in findings {
            self.find(check, finding, policy, now);
        }
        self.examine_conditions(tier, &reading.conditions, policy, now);
    }

    /// Takes in the result of a check.
    fn find(&mut self, check: Check, finding: Finding, policy: &Policy, now: Now) {
        match finding {
            Finding::Bad(evidence) => self.fail(check, evidence, policy, now),
            Finding::Good => {
                let stood = self.standing.contains_key(&check);
                self.pass(&check, policy, now);
                // The event of the same error has no other end: the driver reports no event when
                // the counter is reset.
                if check == Check::Ecc && stood && !self.standing.contains_key(&check) {
                    self.forget_ecc();
                }
                // Names of conditions come from the probe, so their number is limited.
                if check.condition().is_none() || self.has_room_for_passed() {
                    self.passed.insert(check);
                }
            }
            Finding::Open => {}
            Finding::Unread => {
                if let Some(standing) = self.standing.get_mut(&check) {
                    standing.unread.get_or_insert(now.wall);
                }
            }
        }
    }
}

fn deep(values: &Deep) -> Finding {
    match values.passed {
        Some(true) => Finding::Good,
        Some(false) => Finding::Bad(match values.output.trim() {
            "" => "the command for deep checks failed".to_owned(),
            output => format!("the command for deep checks failed: {output}"),
        }),
        None => Finding::Unread,
    }
}
