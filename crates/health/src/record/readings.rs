//! From what a check-up read to what its checks found.

mod conditions;
mod counters;
mod performing;
mod working;

use model::{Deep, Reading, Values};

pub(super) use self::counters::Counters;
use super::Record;
use crate::{Check, Now, Policy};

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Finding {
    /// Trouble, with its evidence.
    Bad(String),
    /// None.
    Good,
    /// What was read does not decide it.
    Open,
    /// What it needs was not read.
    Unread,
}

// === impl Finding ===

impl Finding {
    /// A flag that must not be set.
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
    /// Makes the checks of a reading.
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
        // The next agent counts from here.
        self.unsaved |= link_errors.is_some() && self.counters.link_errors != link_errors;
        for (check, finding) in findings {
            self.find(check, finding, policy, now);
        }
        self.examine_conditions(tier, &reading.conditions, policy, now);
    }

    fn find(&mut self, check: Check, finding: Finding, policy: &Policy, now: Now) {
        match finding {
            Finding::Bad(evidence) => self.fail(check, evidence, policy, now),
            Finding::Good => {
                let stood = self.standing.contains_key(&check);
                self.pass(&check, policy, now);
                if check == Check::Ecc && stood && !self.standing.contains_key(&check) {
                    self.forget_ecc();
                }
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
