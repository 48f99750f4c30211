//! Trouble that a check found: how it begins, passes, and ends.

use std::time::Duration;

use jiff::Timestamp;
use model::{SinceReset, Tier};

use super::{Begun, Flap, Moment, Record};
use crate::{Check, Now, Policy, policy};

/// Trouble that a check found and has not found gone yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) evidence: String,
    pub(super) since: Timestamp,
    pub(super) began: Moment,
    /// The checks that passed since.
    pub(super) passing: Option<Passing>,
    /// Since when its check could not be made.
    pub(super) unread: Option<Timestamp>,
    /// A condition that is a warning at most.
    pub(super) mild: bool,
    /// A condition that ends when the driver is loaded anew.
    pub(super) ends_with_reset: bool,
    /// The time for which a condition may last before it counts.
    pub(super) grace: Duration,
}

/// Checks in a row that passed. Those that an agent before this one made are not counted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passing {
    pub(super) count: u32,
    /// How long the trouble had lasted at the first of them.
    pub(super) after: Duration,
    pub(super) first: Moment,
    pub(super) since: Timestamp,
}

// === impl Standing ===

impl Standing {
    /// True for a condition that has not lasted long enough to count. One that passes its checks does not
    /// grow older.
    pub(super) fn is_in_grace(&self, now: Now) -> bool {
        self.lasted(now) < self.grace
    }

    /// The time that the trouble lasted, up to the first check that passed.
    fn lasted(&self, now: Now) -> Duration {
        let ended = self.passing.map(|passing| passing.after);
        ended.unwrap_or_else(|| self.began.ago(now))
    }
}

// === impl Record ===

impl Record {
    /// A check found trouble. What stands keeps its beginning.
    pub(super) fn fail(&mut self, check: Check, evidence: String, policy: &Policy, now: Now) {
        self.count_beginning(&check, policy, now);
        self.stand(check, evidence, now);
    }

    /// Counts that trouble begins if what a check found now is not the same trouble still.
    pub(super) fn count_beginning(&mut self, check: &Check, policy: &Policy, now: Now) {
        if self.begins(check) {
            self.begin(flap(check), policy, now);
        }
    }

    /// Lets trouble stand that a check found.
    pub(super) fn stand(&mut self, check: Check, evidence: String, now: Now) -> &mut Standing {
        let standing = self.standing.entry(check).or_insert_with(|| Standing {
            evidence: String::new(),
            since: now.wall,
            began: Moment::new(now),
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

    /// A check passed.
    pub(super) fn pass(&mut self, check: &Check, policy: &Policy, now: Now) {
        if self.has_outlasted_grace(check, now) {
            self.begin(flap(check), policy, now);
        }
        let (passes, hold) = self.needs(check, policy, now);
        let Some(standing) = self.standing.get_mut(check) else {
            return;
        };
        standing.unread = None;
        let run = standing.passing.filter(|passing| passing.count > 0);
        let mut passing = run.unwrap_or(Passing {
            count: 0,
            after: standing.began.ago(now),
            first: Moment::new(now),
            since: now.wall,
        });
        passing.count = passing.count.saturating_add(1);
        standing.passing = Some(passing);
        if passing.count >= passes && passing.first.ago(now) >= hold {
            // No verdict tells of the end of what did not count.
            self.unsaved |= !standing.grace.is_zero();
            self.standing.remove(check);
        }
    }

    /// The device is not there: that replaces every other trouble of its presence.
    pub(super) fn lose(&mut self, check: Check, evidence: String, policy: &Policy, now: Now) {
        self.unsaved |= !std::mem::replace(&mut self.away, true);
        self.fail(check.clone(), evidence, policy, now);
        self.standing
            .retain(|other, _| *other == check || other.tier() != Tier::Present);
    }

    /// Somebody looked and could not tell: what was known before stands.
    pub(super) fn doubt(&mut self, evidence: String, policy: &Policy, now: Now) {
        self.standing.remove(&Check::MonitorDown);
        self.fail(Check::NotAnswering, evidence, policy, now);
    }

    /// The device is there and is read.
    pub(super) fn recover(&mut self, policy: &Policy, now: Now) {
        if std::mem::take(&mut self.away) {
            self.unsaved = true;
            self.reset(policy);
            // Its counters began anew, which is known.
            self.since_reset = SinceReset::default();
        }
        for check in Check::ALL {
            if check.tier() == Tier::Present {
                self.pass(&check, policy, now);
            }
        }
    }

    /// Counts that trouble begins. What did not begin for long is forgotten.
    pub(super) fn begin(&mut self, flap: Flap, policy: &Policy, now: Now) {
        let lately = |begun: &&Begun| {
            let ago = now.wall.duration_since(begun.last);
            Duration::try_from(ago).unwrap_or_default() <= policy.health.hold_down_memory
        };
        let times = self.begun.get(&flap).filter(lately).map_or(0, |b| b.times);
        let begun = Begun {
            times: times.saturating_add(1),
            last: now.wall,
        };
        self.begun.insert(flap, begun);
        self.unsaved = true;
    }

    /// Nobody looks: the looks of before and after are not one row.
    pub(super) fn recount(&mut self) {
        for (check, standing) in &mut self.standing {
            if check.tier() == Tier::Present
                && let Some(passing) = &mut standing.passing
            {
                passing.count = 0;
            }
        }
    }

    /// How often trouble began lately.
    pub(super) fn times(&self, flap: &Flap) -> u32 {
        self.begun.get(flap).map_or(0, |begun| begun.times)
    }

    /// How many passes end what a check found, and over how much time.
    pub(super) fn needs(&self, check: &Check, policy: &Policy, now: Now) -> (u32, Duration) {
        let doubled = |times| policy::doubled(policy, policy.health.hold_down, times);
        let times = self.times(&flap(check));
        match check {
            // It is not the device that failed, or it was not out.
            Check::MonitorDown => (1, Duration::ZERO),
            Check::NotAnswering if !self.was_out(policy, now) => (1, Duration::ZERO),
            Check::Condition(..) if self.is_in_grace(check, now) => (1, Duration::ZERO),
            _ if check.tier() == Tier::Present => (policy.health.passes, doubled(times)),
            // The clock of a check-up is slow: the first time, one that passes is enough.
            _ if times <= 1 => (1, Duration::ZERO),
            _ => (1, doubled(times - 1)),
        }
    }

    /// Whether the driver had not answered for so long that the device was out.
    fn was_out(&self, policy: &Policy, now: Now) -> bool {
        let standing = self.standing.get(&Check::NotAnswering);
        standing.is_some_and(|standing| standing.lasted(now) >= policy.health.unanswered_grace)
    }

    fn is_in_grace(&self, check: &Check, now: Now) -> bool {
        let standing = self.standing.get(check);
        standing.is_some_and(|standing| standing.is_in_grace(now))
    }

    /// True for a condition that fails, and has done so for longer than its grace. That is counted when it
    /// passes: before, it may not have been worth counting.
    fn has_outlasted_grace(&self, check: &Check, now: Now) -> bool {
        self.standing.get(check).is_some_and(|standing| {
            let has_grace = !standing.grace.is_zero();
            has_grace && standing.passing.is_none() && !standing.is_in_grace(now)
        })
    }

    /// Whether trouble that is found now begins with it.
    fn begins(&self, check: &Check) -> bool {
        let fails = |check: &Check| {
            let standing = self.standing.get(check);
            // One with a grace was not counted when it was found.
            standing.is_some_and(|standing| standing.passing.is_none() && standing.grace.is_zero())
        };
        match check {
            Check::MonitorDown => false,
            Check::Lost | Check::Gone => !fails(&Check::Lost) && !fails(&Check::Gone),
            _ => !fails(check),
        }
    }
}

/// What counts together: a card that is lost and one that is not listed are both away.
fn flap(check: &Check) -> Flap {
    match check {
        Check::Gone => Flap::Check(Check::Lost),
        other => Flap::Check(other.clone()),
    }
}
