//! Bugs planted on purpose. The scripts have to catch each of them, or the scripts prove nothing.

use health::{Continuity, DeviceRecord, HealthPolicy, Now, SavedDevice};
use model::{ConditionState, EventCode, Verdict};

use crate::{
    SCRIPTS, run,
    script::{Counts, Read, View},
    subject::Subject,
};

/// Declares a subject with a bug: the record works as it should except for the overridden methods.
macro_rules! planted {
    ($(#[$doc:meta])* $name:ident { $($method:item)* }) => {
        $(#[$doc])*
        #[derive(Default)]
        struct $name(DeviceRecord);

        impl Planted for $name {
            fn inner(&mut self) -> &mut DeviceRecord {
                &mut self.0
            }

            fn inner_ref(&self) -> &DeviceRecord {
                &self.0
            }

            $($method)*
        }
    };
}

/// Methods in which a bug can be planted.
trait Planted: Default {
    fn inner(&mut self) -> &mut DeviceRecord;
    fn inner_ref(&self) -> &DeviceRecord;

    fn policy(policy: &HealthPolicy) -> HealthPolicy {
        policy.clone()
    }

    fn look(&mut self, view: View, is_card: bool, policy: &HealthPolicy, now: Now) {
        Subject::see(self.inner(), view, is_card, policy, now);
    }

    fn read(&mut self, read: &Read, policy: &HealthPolicy, now: Now) {
        Subject::read(self.inner(), read, policy, now);
    }

    fn count(&mut self, counts: Counts, policy: &HealthPolicy) {
        Subject::count(self.inner(), counts, policy);
    }

    fn kept(same: Continuity, saved: serde_json::Value) -> (Continuity, serde_json::Value) {
        (same, saved)
    }
}

impl<P: Planted> Subject for P {
    fn see(&mut self, view: View, is_card: bool, policy: &HealthPolicy, now: Now) {
        self.look(view, is_card, &Self::policy(policy), now);
    }

    fn happen(&mut self, event: EventCode, policy: &HealthPolicy, now: Now) {
        Subject::happen(self.inner(), event, &Self::policy(policy), now);
    }

    fn read(&mut self, read: &Read, policy: &HealthPolicy, now: Now) {
        Planted::read(self, read, &Self::policy(policy), now);
    }

    fn count(&mut self, counts: Counts, policy: &HealthPolicy) {
        Planted::count(self, counts, &Self::policy(policy));
    }

    fn restart(&mut self, same: Continuity, policy: &HealthPolicy, stop: Now, start: Now) {
        let saved = serde_json::to_value(self.inner().to_saved(stop)).expect("a record is JSON");
        let (same, saved) = Self::kept(same, saved);
        let saved: SavedDevice = serde_json::from_value(saved).expect("what was kept is read");
        *self.inner() = DeviceRecord::from_saved(saved, same, &Self::policy(policy), start);
    }

    fn verdict(&self, policy: &HealthPolicy, now: Now) -> Verdict {
        self.inner_ref().verdict(&Self::policy(policy), now)
    }

    fn record(&mut self) -> &mut DeviceRecord {
        self.inner()
    }
}

fn without(mut saved: serde_json::Value, key: &str) -> serde_json::Value {
    let saved_object = saved.as_object_mut().expect("a record is an object");
    saved_object.remove(key);
    saved
}

fn standing_without(saved: serde_json::Value, key: &str) -> serde_json::Value {
    standing_of_without(saved, |_| true, key)
}

/// Removes a key from the saved findings of some checks.
fn standing_of_without(
    mut saved: serde_json::Value,
    of: impl Fn(&str) -> bool,
    key: &str,
) -> serde_json::Value {
    let standing = saved.get_mut("standing");
    let standing = standing.and_then(|all| all.as_array_mut());
    for one in standing.into_iter().flatten() {
        if one["check"].as_str().is_some_and(&of) {
            *one = without(one.take(), key);
        }
    }
    saved
}

planted! {
    /// A device is healthy with the first look that finds it.
    NoHoldDown {
        fn policy(policy: &HealthPolicy) -> HealthPolicy {
            let mut policy = policy.clone();
            policy.health.passes = 1;
            policy.health.hold_down = std::time::Duration::ZERO;
            policy
        }
    }
}

planted! {
    /// The hold-down does not grow with recurrences.
    NoDoubling {
        fn policy(policy: &HealthPolicy) -> HealthPolicy {
            let mut policy = policy.clone();
            policy.health.hold_down_limit = policy.health.hold_down;
            policy
        }
    }
}

planted! {
    /// A driver that was absent for a moment counts as a reset.
    NoDriverResets {
        fn look(&mut self, view: View, is_card: bool, policy: &HealthPolicy, now: Now) {
            Subject::see(&mut self.0, view, is_card, policy, now);
            if view == View::NoDriver {
                self.0.record_driver_reload(policy);
            }
        }
    }
}

planted! {
    /// A restart of the agent ends events that only a reset ends.
    RestartResets {
        fn kept(same: Continuity, saved: serde_json::Value) -> (Continuity, serde_json::Value) {
            (Continuity { same_driver: false, ..same }, saved)
        }
    }
}

planted! {
    /// A restart of the agent loses cordons.
    RestartUncordons {
        fn kept(same: Continuity, saved: serde_json::Value) -> (Continuity, serde_json::Value) {
            (same, without(saved, "cordon"))
        }
    }
}

planted! {
    /// A restart of the agent heals a lost card.
    RestartFinds {
        fn kept(same: Continuity, saved: serde_json::Value) -> (Continuity, serde_json::Value) {
            (same, without(saved, "standing"))
        }
    }
}

planted! {
    /// A restart of the agent loses the counts of recurrences.
    RestartForgetsFlapping {
        fn kept(same: Continuity, saved: serde_json::Value) -> (Continuity, serde_json::Value) {
            (same, without(saved, "begun"))
        }
    }
}

planted! {
    /// A probe that does not run counts as a look that found the device well.
    BlindIsWell {
        fn look(&mut self, view: View, is_card: bool, policy: &HealthPolicy, now: Now) {
            let view = if view == View::Unwatched { View::Well } else { view };
            Subject::see(&mut self.0, view, is_card, policy, now);
        }
    }
}

planted! {
    /// A value that was not read counts as good.
    UnreadIsWell {
        fn read(&mut self, read: &Read, policy: &HealthPolicy, now: Now) {
            let read = match read {
                Read::Ecc(None) => Read::Ecc(Some(0)),
                Read::RepairPending(None) => Read::RepairPending(Some(false)),
                Read::RepairFailed(None) => Read::RepairFailed(Some(false)),
                Read::Deep(None) => Read::Deep(Some(true)),
                other => other.clone(),
            };
            Subject::read(&mut self.0, &read, policy, now);
        }
    }
}

planted! {
    /// A condition that is a warning takes the device out.
    WarningIsCritical {
        fn read(&mut self, read: &Read, policy: &HealthPolicy, now: Now) {
            let read = match read {
                Read::Condition(named, ConditionState::Warning) => {
                    Read::Condition(*named, ConditionState::Critical)
                }
                other => other.clone(),
            };
            Subject::read(&mut self.0, &read, policy, now);
        }
    }
}

planted! {
    /// A condition that was not read counts as ok.
    UnknownIsOk {
        fn read(&mut self, read: &Read, policy: &HealthPolicy, now: Now) {
            let read = match read {
                Read::Condition(named, ConditionState::Unknown) => {
                    Read::Condition(*named, ConditionState::Ok)
                }
                other => other.clone(),
            };
            Subject::read(&mut self.0, &read, policy, now);
        }
    }
}

planted! {
    /// A restart of the agent forgets that a condition is a warning only.
    RestartForgetsMild {
        fn kept(same: Continuity, saved: serde_json::Value) -> (Continuity, serde_json::Value) {
            (same, standing_without(saved, "mild"))
        }
    }
}

planted! {
    /// A restart of the agent forgets that a reset ends a condition.
    RestartForgetsReset {
        fn kept(same: Continuity, saved: serde_json::Value) -> (Continuity, serde_json::Value) {
            (same, standing_without(saved, "ends_with_reset"))
        }
    }
}

planted! {
    /// A restart of the agent forgets that a condition may last a while before it counts.
    RestartForgetsGrace {
        fn kept(same: Continuity, saved: serde_json::Value) -> (Continuity, serde_json::Value) {
            (same, standing_without(saved, "grace_ms"))
        }
    }
}

planted! {
    /// A restart of the agent starts the grace of a condition again.
    RestartRenewsGrace {
        fn kept(same: Continuity, saved: serde_json::Value) -> (Continuity, serde_json::Value) {
            let is_condition = |check: &str| check.starts_with("condition:");
            (same, standing_of_without(saved, is_condition, "lasted_ms"))
        }
    }
}

planted! {
    /// A reset between two looks is not seen.
    ResetUnseen {
        fn count(&mut self, _: Counts, _: &HealthPolicy) {}
    }
}

planted! {
    /// A restart of the agent loses the counters from before a reset.
    RestartForgetsCounts {
        fn kept(same: Continuity, saved: serde_json::Value) -> (Continuity, serde_json::Value) {
            (same, without(saved, "since_reset"))
        }
    }
}

planted! {
    /// Memory errors that were cleared count as a reset.
    ClearedIsReset {
        fn count(&mut self, counts: Counts, policy: &HealthPolicy) {
            let counts = Counts { energy: None, replays: None, ..counts };
            Subject::count(&mut self.0, counts, policy);
        }
    }
}

/// Returns true if the scripts catch the bug of the subject.
fn is_caught<S: Subject>() -> bool {
    (0..SCRIPTS).any(|seed| run::<S>(seed).is_err())
}

#[test]
fn a_forgotten_hold_down_is_caught() {
    assert!(is_caught::<NoHoldDown>());
}

#[test]
fn a_forgotten_doubling_is_caught() {
    assert!(is_caught::<NoDoubling>());
}

#[test]
fn events_that_end_without_a_reset_are_caught() {
    assert!(is_caught::<NoDriverResets>());
}

#[test]
fn a_restart_that_drops_events_is_caught() {
    assert!(is_caught::<RestartResets>());
}

#[test]
fn a_restart_that_drops_a_cordon_is_caught() {
    assert!(is_caught::<RestartUncordons>());
}

#[test]
fn a_restart_that_heals_a_lost_card_is_caught() {
    assert!(is_caught::<RestartFinds>());
}

#[test]
fn a_restart_that_forgets_flapping_is_caught() {
    assert!(is_caught::<RestartForgetsFlapping>());
}

#[test]
fn a_monitor_that_is_down_and_heals_is_caught() {
    assert!(is_caught::<BlindIsWell>());
}

#[test]
fn a_value_that_is_not_read_and_heals_is_caught() {
    assert!(is_caught::<UnreadIsWell>());
}

#[test]
fn a_warning_that_takes_a_device_out_is_caught() {
    assert!(is_caught::<WarningIsCritical>());
}

#[test]
fn a_condition_that_is_unknown_and_heals_is_caught() {
    assert!(is_caught::<UnknownIsOk>());
}

#[test]
fn a_restart_that_takes_a_warning_for_critical_is_caught() {
    assert!(is_caught::<RestartForgetsMild>());
}

#[test]
fn a_restart_that_forgets_that_a_reset_ends_a_condition_is_caught() {
    assert!(is_caught::<RestartForgetsReset>());
}

#[test]
fn a_restart_that_forgets_the_grace_of_a_condition_is_caught() {
    assert!(is_caught::<RestartForgetsGrace>());
}

#[test]
fn a_restart_that_begins_the_grace_of_a_condition_anew_is_caught() {
    assert!(is_caught::<RestartRenewsGrace>());
}

#[test]
fn a_reset_between_two_looks_that_is_not_seen_is_caught() {
    assert!(is_caught::<ResetUnseen>());
}

#[test]
fn a_restart_that_forgets_what_was_counted_is_caught() {
    assert!(is_caught::<RestartForgetsCounts>());
}

#[test]
fn memory_errors_that_were_cleared_and_heal_are_caught() {
    assert!(is_caught::<ClearedIsReset>());
}

/// A subject without a bug has to pass, or a catch means nothing.
#[test]
fn a_subject_without_a_bug_is_not_caught() {
    planted! { Right {} }
    assert!((0..100).all(|seed| run::<Right>(seed).is_ok()));
}
