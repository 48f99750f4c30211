//! Conditions: named states that a vendor's driver reports besides the values that all vendors
//! have.

use std::collections::BTreeMap;

use config::Weight;
use model::{Condition, ConditionName, ConditionState, Tier};

use super::CheckResult;
use crate::{
    Check, HealthPolicy, Now, policy,
    record::{DeviceRecord, RecurrenceKey},
};

/// Limit of conditions that are kept for a device, so that a probe with ever new names fills
/// neither memory nor the state file.
const MOST: usize = 32;
/// Limit of a reason, in characters; the rest is cut.
const REASON_LIMIT: usize = 256;

// === impl DeviceRecord ===

impl DeviceRecord {
    /// Checks the conditions of a reading. An existing finding whose condition is missing in the
    /// reading counts as not read.
    pub(super) fn examine_conditions(
        &mut self,
        tier: Tier,
        conditions: &[Condition],
        policy: &HealthPolicy,
        now: Now,
    ) {
        let conditions = worst(conditions);
        let is_absent = |check: &&Check| match check {
            Check::Condition(of, name) => *of == tier && !conditions.contains_key(name),
            _ => false,
        };
        let absent: Vec<Check> = self.standing.keys().filter(is_absent).cloned().collect();
        for check in absent {
            self.apply_result(check, CheckResult::Unread, policy, now);
        }
        for (name, condition) in conditions {
            let check = Check::Condition(tier, name.clone());
            match condition.state {
                ConditionState::Ok => self.apply_result(check, CheckResult::Passed, policy, now),
                ConditionState::Unknown => {
                    self.apply_result(check, CheckResult::Unread, policy, now)
                }
                ConditionState::Warning | ConditionState::Critical => {
                    self.fail_condition(check, condition, policy, now);
                }
            }
        }
        self.trim_begun();
    }

    /// True if one more passed condition can be kept.
    pub(super) fn has_room_for_passed(&self) -> bool {
        count_conditions(self.passed.iter()) < MOST
    }

    /// Drops conditions of the least weight until at most the limit is left.
    pub(in crate::record) fn trim_conditions(&mut self, policy: &HealthPolicy) {
        while count_conditions(self.standing.keys()) > MOST
            && let Some((_, lightest)) = self.lightest_condition(policy)
        {
            self.standing.remove(&lightest);
        }
        self.trim_begun();
    }

    /// Takes in a condition that is a warning or critical.
    fn fail_condition(
        &mut self,
        check: Check,
        condition: &Condition,
        policy: &HealthPolicy,
        now: Now,
    ) {
        let mild = condition.state == ConditionState::Warning;
        if !self.make_room(&check, mild, policy) {
            return;
        }
        let grace = condition.grace();
        if grace.is_zero() {
            self.count_if_beginning(&check, policy, now);
        }
        // A condition within its grace is in no verdict, and the next agent must continue its time.
        self.unsaved |= !grace.is_zero() && !self.standing.contains_key(&check);
        let standing = self.stand(check, describe_condition(condition), now);
        standing.mild = mild;
        standing.ends_with_reset = condition.ends_with_reset;
        standing.grace = grace;
    }

    /// Makes room for a condition, if necessary by dropping one of less weight. Returns false if
    /// there is none.
    fn make_room(&mut self, check: &Check, mild: bool, policy: &HealthPolicy) -> bool {
        let stands = self.standing.contains_key(check);
        if stands || count_conditions(self.standing.keys()) < MOST {
            return true;
        }
        match self.lightest_condition(policy) {
            Some((load, lightest)) if load < burden(check, mild, policy) => {
                self.standing.remove(&lightest);
                true
            }
            _ => false,
        }
    }

    /// Returns the condition finding of the least weight, with that weight.
    fn lightest_condition(&self, policy: &HealthPolicy) -> Option<(u8, Check)> {
        let standing = self.standing.iter();
        let conditions = standing.filter(|(check, _)| check.condition_name().is_some());
        conditions
            .map(|(check, standing)| (burden(check, standing.mild, policy), check))
            .min()
            .map(|(load, check)| (load, check.clone()))
    }

    /// Drops the oldest counts of recurrences of conditions, if there are too many. Counts of
    /// existing findings stay.
    fn trim_begun(&mut self) {
        let conditions = self.begun.keys().filter(|flap| is_condition(flap));
        let surplus = conditions.count().saturating_sub(MOST);
        for _ in 0..surplus {
            let stands = |flap: &RecurrenceKey| match flap {
                RecurrenceKey::Check(check) => self.standing.contains_key(check),
                RecurrenceKey::Residue => false,
            };
            let begun = self.begun.iter();
            let idle = begun.filter(|(flap, _)| is_condition(flap) && !stands(flap));
            let oldest = idle.min_by_key(|(_, begun)| begun.last);
            let Some(oldest) = oldest.map(|(flap, _)| flap.clone()) else {
                return;
            };
            self.begun.remove(&oldest);
        }
    }
}

/// Returns the conditions by name; of two with the same name the more severe.
fn worst(conditions: &[Condition]) -> BTreeMap<&ConditionName, &Condition> {
    let mut worst = BTreeMap::<&ConditionName, &Condition>::new();
    for condition in conditions {
        let kept = worst.entry(&condition.name).or_insert(condition);
        if severity(condition.state) > severity(kept.state) {
            *kept = condition;
        }
    }
    worst
}

fn severity(state: ConditionState) -> u8 {
    match state {
        ConditionState::Ok => 0,
        ConditionState::Unknown => 1,
        ConditionState::Warning => 2,
        ConditionState::Critical => 3,
    }
}

/// Returns the weight of a condition as a number: the higher, the more it counts.
fn burden(check: &Check, mild: bool, policy: &HealthPolicy) -> u8 {
    match policy::check_weight(policy, check) {
        Weight::Off => 0,
        Weight::Out if !mild => 2,
        Weight::Out | Weight::Warn => 1,
    }
}

/// Returns `NAME: REASON`, or the state in place of a reason if the vendor gives none.
fn describe_condition(condition: &Condition) -> String {
    let reason = match condition.reason.trim() {
        "" if condition.state == ConditionState::Critical => "critical",
        "" => "warning",
        reason => reason,
    };
    let reason: String = reason.chars().take(REASON_LIMIT).collect();
    // The history recognizes a condition by the text before the first colon.
    format!("{}: {reason}", condition.name)
}

fn count_conditions<'a>(checks: impl Iterator<Item = &'a Check>) -> usize {
    checks
        .filter(|check| check.condition_name().is_some())
        .count()
}

fn is_condition(flap: &RecurrenceKey) -> bool {
    matches!(flap, RecurrenceKey::Check(Check::Condition(..)))
}
