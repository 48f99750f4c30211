//! Conditions: what a vendor reads of a device besides the facts that every vendor has.

use std::collections::BTreeMap;

use config::Weight;
use model::{Condition, ConditionName, ConditionState, Tier};

use super::Finding;
use crate::{
    Check, Now, Policy, policy,
    record::{Flap, Record},
};

/// The most conditions of a device that are kept, so that a probe with ever new names fills neither memory
/// nor the state file.
const MOST: usize = 32;
/// The most characters of a reason that are kept.
const REASON_LIMIT: usize = 256;

// === impl Record ===

impl Record {
    /// Judges the conditions of a reading. One that stands and that the reading does not have was not read.
    pub(super) fn examine_conditions(
        &mut self,
        tier: Tier,
        conditions: &[Condition],
        policy: &Policy,
        now: Now,
    ) {
        let conditions = worst(conditions);
        let is_absent = |check: &&Check| match check {
            Check::Condition(of, name) => *of == tier && !conditions.contains_key(name),
            _ => false,
        };
        let absent: Vec<Check> = self.standing.keys().filter(is_absent).cloned().collect();
        for check in absent {
            self.find(check, Finding::Unread, policy, now);
        }
        for (name, condition) in conditions {
            let check = Check::Condition(tier, name.clone());
            match condition.state {
                ConditionState::Ok => self.find(check, Finding::Good, policy, now),
                ConditionState::Unknown => self.find(check, Finding::Unread, policy, now),
                ConditionState::Warning | ConditionState::Critical => {
                    self.fail_condition(check, condition, policy, now);
                }
            }
        }
        self.trim_begun();
    }

    /// True if one more condition that passed can be kept.
    pub(super) fn has_room_for_passed(&self) -> bool {
        count_conditions(self.passed.iter()) < MOST
    }

    /// Drops the conditions that weigh least until there are not too many.
    pub(in crate::record) fn trim_conditions(&mut self, policy: &Policy) {
        while count_conditions(self.standing.keys()) > MOST
            && let Some((_, lightest)) = self.lightest_condition(policy)
        {
            self.standing.remove(&lightest);
        }
        self.trim_begun();
    }

    fn fail_condition(&mut self, check: Check, condition: &Condition, policy: &Policy, now: Now) {
        let mild = condition.state == ConditionState::Warning;
        if !self.make_room(&check, mild, policy) {
            return;
        }
        let grace = condition.grace();
        if grace.is_zero() {
            self.count_beginning(&check, policy, now);
        }
        // No verdict tells of what does not count yet, and the next agent goes on from here.
        self.unsaved |= !grace.is_zero() && !self.standing.contains_key(&check);
        let standing = self.stand(check, evidence(condition), now);
        standing.mild = mild;
        standing.ends_with_reset = condition.ends_with_reset;
        standing.grace = grace;
    }

    /// Makes room for a condition, if need be in the place of one that weighs less. False if there is none.
    fn make_room(&mut self, check: &Check, mild: bool, policy: &Policy) -> bool {
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

    /// The condition that stands and weighs least, with its weight.
    fn lightest_condition(&self, policy: &Policy) -> Option<(u8, Check)> {
        let standing = self.standing.iter();
        let conditions = standing.filter(|(check, _)| check.condition().is_some());
        conditions
            .map(|(check, standing)| (burden(check, standing.mild, policy), check))
            .min()
            .map(|(load, check)| (load, check.clone()))
    }

    /// Forgets how often conditions began, the oldest first, where there are too many that do not stand.
    fn trim_begun(&mut self) {
        let conditions = self.begun.keys().filter(|flap| is_condition(flap));
        let surplus = conditions.count().saturating_sub(MOST);
        for _ in 0..surplus {
            let stands = |flap: &Flap| match flap {
                Flap::Check(check) => self.standing.contains_key(check),
                Flap::Residue => false,
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

/// The conditions by name; of two with one name the worse counts.
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

/// The weight of a condition, as a number that grows with it.
fn burden(check: &Check, mild: bool, policy: &Policy) -> u8 {
    match policy::weight(policy, check) {
        Weight::Off => 0,
        Weight::Out if !mild => 2,
        Weight::Out | Weight::Warn => 1,
    }
}

/// `NAME: REASON`, with the state where the vendor gives no reason.
fn evidence(condition: &Condition) -> String {
    let reason = match condition.reason.trim() {
        "" if condition.state == ConditionState::Critical => "critical",
        "" => "warning",
        reason => reason,
    };
    let reason: String = reason.chars().take(REASON_LIMIT).collect();
    format!("{}: {reason}", condition.name)
}

fn count_conditions<'a>(checks: impl Iterator<Item = &'a Check>) -> usize {
    checks.filter(|check| check.condition().is_some()).count()
}

fn is_condition(flap: &Flap) -> bool {
    matches!(flap, Flap::Check(Check::Condition(..)))
}
