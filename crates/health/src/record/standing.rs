//! Findings: their beginning, the passes of their check, and their end.

use std::time::Duration;

use jiff::Timestamp;
use model::{SinceReset, Tier};

use super::{DeviceRecord, MonotonicMoment, Recurrence, RecurrenceKey};
use crate::{Check, HealthPolicy, Now, policy};

/// A fault that a check found and has not found ended yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) evidence: String,
    pub(super) since: Timestamp,
    /// Beginning on the monotonic clock, for durations. `since` is the same for people.
    pub(super) began: MonotonicMoment,
    /// Passes in a row since the check last failed.
    pub(super) passing: Option<PassStreak>,
    /// Time since which the check could not be made.
    pub(super) unread: Option<Timestamp>,
    /// True for a condition that is a warning at most.
    pub(super) mild: bool,
    /// True for a condition that ends when the driver is reloaded.
    pub(super) ends_with_reset: bool,
    /// Time that a condition may last before it counts. Zero for other checks.
    pub(super) grace: Duration,
}

/// Passes of a check in a row. Passes of an earlier agent are not counted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PassStreak {
    /// Number of passes by this agent. Zero after a restart or a time without looks.
    pub(super) count: u32,
    /// Age of the finding at the first pass.
    pub(super) after: Duration,
    /// Time of the first pass, on the monotonic clock.
    pub(super) first: MonotonicMoment,
    /// Time of the first pass, for people.
    pub(super) since: Timestamp,
}

// === impl Finding ===

impl Finding {
    /// True for a condition that has not lasted long enough to count. A condition whose check
    /// passes does not grow older.
    pub(super) fn is_in_grace(&self, now: Now) -> bool {
        self.lasted(now) < self.grace
    }

    /// Returns the time from the beginning to the first pass, or to now.
    fn lasted(&self, now: Now) -> Duration {
        let ended = self.passing.map(|passing| passing.after);
        ended.unwrap_or_else(|| self.began.ago(now))
    }
}

// === impl DeviceRecord ===

impl DeviceRecord {
    /// Takes in a failed check. A finding that exists keeps its beginning.
    pub(super) fn record_failure(
        &mut self,
        check: Check,
        evidence: String,
        policy: &HealthPolicy,
        now: Now,
    ) {
        self.count_if_beginning(&check, policy, now);
        self.stand(check, evidence, now);
    }

    /// Counts a beginning if the failed check is not the continuation of an existing finding.
    pub(super) fn count_if_beginning(&mut self, check: &Check, policy: &HealthPolicy, now: Now) {
        if self.begins(check) {
            self.count_beginning(flap(check), policy, now);
        }
    }

    /// Stores the finding of a failed check, and returns it.
    pub(super) fn stand(&mut self, check: Check, evidence: String, now: Now) -> &mut Finding {
        let standing = self.standing.entry(check).or_insert_with(|| Finding {
            evidence: String::new(),
            since: now.wall,
            began: MonotonicMoment::new(now),
            passing: None,
            unread: None,
            mild: false,
            ends_with_reset: false,
            grace: Duration::ZERO,
        });
        standing.evidence = evidence;
        standing.passing = None;
        standing.unread = None;
        standing
    }

    /// Takes in a check that passed. Ends its finding if it passed often and long enough.
    pub(super) fn record_pass(&mut self, check: &Check, policy: &HealthPolicy, now: Now) {
        if self.has_outlasted_grace(check, now) {
            self.count_beginning(flap(check), policy, now);
        }
        let (passes, hold) = self.needs(check, policy, now);
        let Some(standing) = self.standing.get_mut(check) else {
            return;
        };
        standing.unread = None;
        let run = standing.passing.filter(|passing| passing.count > 0);
        let mut passing = run.unwrap_or(PassStreak {
            count: 0,
            after: standing.began.ago(now),
            first: MonotonicMoment::new(now),
            since: now.wall,
        });
        passing.count = passing.count.saturating_add(1);
        standing.passing = Some(passing);
        if passing.count >= passes && passing.first.ago(now) >= hold {
            // A condition within its grace is in no verdict, so its end shows in none.
            self.unsaved |= !standing.grace.is_zero();
            self.standing.remove(check);
        }
    }

    /// Takes in that the device is absent. Replaces every other finding of the tier *present*.
    pub(super) fn record_absence(
        &mut self,
        check: Check,
        evidence: String,
        policy: &HealthPolicy,
        now: Now,
    ) {
        self.unsaved |= !std::mem::replace(&mut self.away, true);
        self.record_failure(check.clone(), evidence, policy, now);
        self.standing
            .retain(|other, _| *other == check || other.tier() != Tier::Present);
    }

    /// Takes in that a probe looked and could not tell the state. Earlier findings stay.
    pub(super) fn doubt(&mut self, evidence: String, policy: &HealthPolicy, now: Now) {
        self.standing.remove(&Check::MonitorDown);
        self.record_failure(Check::NotAnswering, evidence, policy, now);
    }

    /// Takes in that the device is present and is read.
    pub(super) fn recover(&mut self, policy: &HealthPolicy, now: Now) {
        if std::mem::take(&mut self.away) {
            self.unsaved = true;
            self.end_events_by_reset(policy);
            // A return from absence is a reset already. Without this, the first lower counter would
            // count as a second one, and would end events that came in between.
            self.since_reset = SinceReset::default();
        }
        for check in Check::ALL {
            if check.tier() == Tier::Present {
                self.record_pass(&check, policy, now);
            }
        }
    }

    /// Counts a beginning. An older count is dropped if the last beginning is longer ago than
    /// `hold_down_memory`.
    pub(super) fn count_beginning(&mut self, flap: RecurrenceKey, policy: &HealthPolicy, now: Now) {
        let lately = |begun: &&Recurrence| {
            let ago = now.wall.duration_since(begun.last);
            // A negative age comes from a wall clock that was set back; the beginning then counts
            // as recent.
            Duration::try_from(ago).unwrap_or_default() <= policy.health.hold_down_memory
        };
        let times = self.begun.get(&flap).filter(lately).map_or(0, |b| b.times);
        let begun = Recurrence {
            times: times.saturating_add(1),
            last: now.wall,
        };
        self.begun.insert(flap, begun);
        self.unsaved = true;
    }

    /// Starts the counting of passes again for the tier *present*: looks before and after a gap are
    /// not in a row.
    pub(super) fn recount(&mut self) {
        for (check, standing) in &mut self.standing {
            if check.tier() == Tier::Present
                && let Some(passing) = &mut standing.passing
            {
                passing.count = 0;
            }
        }
    }

    /// Returns how often a fault began recently.
    pub(super) fn times(&self, flap: &RecurrenceKey) -> u32 {
        self.begun.get(flap).map_or(0, |begun| begun.times)
    }

    /// Returns the number of passes in a row that end a finding, and the least time they have to
    /// span.
    pub(super) fn needs(&self, check: &Check, policy: &HealthPolicy, now: Now) -> (u32, Duration) {
        let doubled = |times| policy::doubled(policy, policy.health.hold_down, times);
        let times = self.times(&flap(check));
        match check {
            // The device itself did not fail, or never was out of service.
            Check::MonitorDown => (1, Duration::ZERO),
            Check::NotAnswering if !self.was_out(policy, now) => (1, Duration::ZERO),
            Check::Condition(..) if self.is_in_grace(check, now) => (1, Duration::ZERO),
            _ if check.tier() == Tier::Present => (policy.health.passes, doubled(times)),
            // Check-ups are minutes apart: the first time, one pass is enough.
            _ if times <= 1 => (1, Duration::ZERO),
            _ => (1, doubled(times - 1)),
        }
    }

    /// True if the driver did not answer for so long that the device was out of service.
    fn was_out(&self, policy: &HealthPolicy, now: Now) -> bool {
        let standing = self.standing.get(&Check::NotAnswering);
        standing.is_some_and(|standing| standing.lasted(now) >= policy.health.unanswered_grace)
    }

    /// True if the check has a finding that has not lasted long enough to count.
    fn is_in_grace(&self, check: &Check, now: Now) -> bool {
        let standing = self.standing.get(check);
        standing.is_some_and(|standing| standing.is_in_grace(now))
    }

    /// True for a condition that fails and has done so for longer than its grace. Its beginning is
    /// counted when the check passes: earlier, it might have ended within the grace.
    fn has_outlasted_grace(&self, check: &Check, now: Now) -> bool {
        self.standing.get(check).is_some_and(|standing| {
            let has_grace = !standing.grace.is_zero();
            has_grace && standing.passing.is_none() && !standing.is_in_grace(now)
        })
    }

    /// True if a failure of the check now is the beginning of a fault.
    fn begins(&self, check: &Check) -> bool {
        let fails = |check: &Check| {
            let standing = self.standing.get(check);
            // A condition with a grace was not counted when it was found.
            standing.is_some_and(|standing| standing.passing.is_none() && standing.grace.is_zero())
        };
        match check {
            // A probe that crashes again and again is no fault of its devices.
            Check::MonitorDown => false,
            Check::Lost | Check::Gone => !fails(&Check::Lost) && !fails(&Check::Gone),
            _ => !fails(check),
        }
    }
}

/// Returns the key under which beginnings are counted. A device that is lost and one that is not
/// listed are both absent, and count together.
fn flap(check: &Check) -> RecurrenceKey {
    match check {
        Check::Gone => RecurrenceKey::Check(Check::Lost),
        other => RecurrenceKey::Check(other.clone()),
    }
}
