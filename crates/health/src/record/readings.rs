//! Makes the checks of a reading.

mod conditions;
mod counters;
mod performing;
mod working;

use model::{Deep, Reading, Values};

pub(super) use self::counters::ReadingCounters;
use super::DeviceRecord;
use crate::{Check, HealthPolicy, Now};

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CheckResult {
    /// The check failed. Contains the evidence.
    Failed(String),
    /// The check passed.
    Passed,
    /// The values do not decide: the state stays what it was.
    Undecided,
    /// A value that the check needs was not read.
    Unread,
}

// === impl CheckResult ===

impl CheckResult {
    /// Checks a flag that must not be set.
    fn check_flag(value: Option<bool>, evidence: &str) -> Self {
        match value {
            Some(true) => Self::Failed(evidence.to_owned()),
            Some(false) => Self::Passed,
            None => Self::Unread,
        }
    }
}

// === impl DeviceRecord ===

impl DeviceRecord {
    /// Makes all checks of a reading, conditions included.
    pub(super) fn check_reading(&mut self, reading: &Reading, policy: &HealthPolicy, now: Now) {
        let tier = reading.values.tier();
        match reading.unsupported.as_slice() {
            [] => drop(self.unsupported.remove(&tier)),
            names => drop(self.unsupported.insert(tier, names.to_vec())),
        }
        let (thresholds, link_errors) = (&policy.health.thresholds, self.counters.link_errors);
        let findings = match &reading.values {
            Values::Working(values) => {
                if let Some(action) = values.recovery {
                    self.set_action_asked(action != model::RecoveryAction::None, policy);
                }
                working::check_working(values, thresholds)
            }
            Values::Performing(values) => {
                performing::check_performing(values, &mut self.counters, thresholds)
            }
            Values::Trend(values) => self.counters.check_trend(values, thresholds, now),
            Values::Deep(values) => vec![(Check::Deep, deep(values))],
        };
        // The next agent compares with this count.
        self.unsaved |= link_errors.is_some() && self.counters.link_errors != link_errors;
        for (check, finding) in findings {
            self.apply_result(check, finding, policy, now);
        }
        self.examine_conditions(tier, &reading.conditions, policy, now);
    }

    /// Takes in the result of a check.
    fn apply_result(
        &mut self,
        check: Check,
        finding: CheckResult,
        policy: &HealthPolicy,
        now: Now,
    ) {
        match finding {
            CheckResult::Failed(evidence) => self.record_failure(check, evidence, policy, now),
            CheckResult::Passed => {
                let stood = self.standing.contains_key(&check);
                self.record_pass(&check, policy, now);
                // The event of the same error has no other end: the driver reports no event when
                // the counter is reset.
                if check == Check::Ecc && stood && !self.standing.contains_key(&check) {
                    self.forget_ecc();
                }
                // Names of conditions come from the probe, so their number is limited.
                if check.condition_name().is_none() || self.has_room_for_passed() {
                    self.passed.insert(check);
                }
            }
            CheckResult::Undecided => {}
            CheckResult::Unread => {
                if let Some(standing) = self.standing.get_mut(&check) {
                    standing.unread.get_or_insert(now.wall);
                }
            }
        }
    }
}

fn deep(values: &Deep) -> CheckResult {
    match values.passed {
        Some(true) => CheckResult::Passed,
        Some(false) => CheckResult::Failed(match values.output.trim() {
            "" => "the command for deep checks failed".to_owned(),
            output => format!("the command for deep checks failed: {output}"),
        }),
        None => CheckResult::Unread,
    }
}
