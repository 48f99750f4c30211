//! Saves and restores a record. A restart of the agent neither heals nor breaks a device.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use model::{EventCode, Tier};

use super::{
    Begun, Cordon, Flap, Moment, Record, Release, Residue,
    events::Happened,
    readings::Counters,
    standing::{Passing, Standing},
};
use crate::{
    Check, Continuity, Now, Policy, Saved,
    saved::{SavedBegun, SavedCordon, SavedEvent, SavedRelease, SavedResidue, SavedStanding},
};

/// Class of the events that older agents saved by number alone.
const OLD_CLASS: &str = "xid";

// === impl Record ===

impl Record {
    /// Returns the state to save. `MonitorDown` is left out: it belongs to the running agent.
    pub fn save(&self, now: Now) -> Saved {
        let ago = |then: Moment| then.ago(now).as_secs();
        let events = self.events.iter().map(|(event, happened)| SavedEvent {
            code: Some(event.clone()),
            // An older agent reads this field after a rollback.
            xid: event.number().filter(|_| event.class() == OLD_CLASS),
            since: happened.since,
            ago: ago(happened.last),
            asked: happened.asked,
            uncounted: !happened.counted,
        });
        let standing = self.standing.iter();
        let standing = standing.filter(|(check, _)| **check != Check::MonitorDown);
        let begun = self.begun.iter().map(|(flap, begun)| SavedBegun {
            what: flap.name().into_owned(),
            times: begun.times,
            last: begun.last,
        });
        Saved {
            backend: String::new(),
            seen: Some(now.wall),
            events: events.collect(),
            standing: standing.map(|(c, s)| save_standing(c, s, now)).collect(),
            begun: begun.collect(),
            away: self.away,
            asked: self.asked,
            link_errors: self.counters.link_errors,
            since_reset: self.since_reset,
            cordon: self.cordon.as_ref().map(|cordon| SavedCordon {
                reason: cordon.reason.clone(),
                since: cordon.since,
            }),
            release: self
                .release
                .map(|Release { since, until, .. }| SavedRelease { since, until }),
            residue: self.residue.as_ref().map(|residue| SavedResidue {
                evidence: residue.evidence.clone(),
                since: residue.since,
                ago: ago(residue.found),
            }),
        }
    }

    /// Restores the record of a device that an earlier agent knew. Each finding stays until its own
    /// check passes. If the node or the driver was restarted, everything that a reset ends has
    /// ended.
    pub fn restore(saved: Saved, continuity: Continuity, policy: &Policy, now: Now) -> Self {
        let events = saved
            .events
            .into_iter()
            .map(|saved| restore_event(&saved, now));
        let mut record = Self {
            events: events.collect(),
            standing: restore_standings(saved.standing, now),
            begun: restore_begun(saved.begun),
            away: saved.away,
            asked: saved.asked,
            counters: Counters::since(saved.link_errors),
            since_reset: saved.since_reset,
            cordon: saved
                .cordon
                .map(|SavedCordon { reason, since }| Cordon { reason, since }),
            release: saved.release.map(|SavedRelease { since, until }| Release {
                since,
                until,
                own: false,
            }),
            residue: saved.residue.map(|residue| Residue {
                found: earlier(residue.ago, now),
                evidence: residue.evidence,
                since: residue.since,
            }),
            ..Self::default()
        };
        record.trim_conditions(policy);
        if !continuity.same_boot || !continuity.same_driver {
            record.reloaded(policy);
        }
        // A reboot ends a release: whatever the operator did to the card is over.
        if !continuity.same_boot {
            record.resume();
        }
        record
    }

    /// Takes over the saved state of an earlier agent when the device has been seen already. What
    /// this agent knows is newer and takes precedence.
    pub fn inherit(&mut self, saved: Saved, continuity: Continuity, policy: &Policy, now: Now) {
        let mut old = Self::restore(saved, continuity, policy, now);
        // The device was absent then or since, and is present now, which is a reset.
        if old.away || self.begun.contains_key(&Flap::Check(Check::Lost)) {
            old.reset(policy);
        }
        old.count(&self.since_reset, policy);
        let open = |check: &Check| check.tier() != Tier::Present && !self.passed.contains(check);
        old.standing.retain(|check, _| open(check));
        old.events.append(&mut self.events);
        old.standing.append(&mut self.standing);
        old.begun.append(&mut self.begun);
        self.events = old.events;
        self.standing = old.standing;
        self.begun = old.begun;
        self.trim_conditions(policy);
        self.counters.link_errors = self.counters.link_errors.or(old.counters.link_errors);
        self.since_reset = old.since_reset;
        self.cordon = self.cordon.take().or(old.cordon);
        self.residue = self.residue.take().or(old.residue);
    }
}

// === impl Flap ===

impl Flap {
    /// Name in the state file.
    fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Check(check) => check.name(),
            Self::Residue => SavedBegun::RESIDUE.into(),
        }
    }

    /// Parses a name from the state file. `None` for a name of another build.
    fn named(name: &str) -> Option<Self> {
        match name {
            SavedBegun::RESIDUE => Some(Self::Residue),
            name => Check::named(name).map(Self::Check),
        }
    }
}

fn save_standing(check: &Check, standing: &Standing, now: Now) -> SavedStanding {
    SavedStanding {
        check: check.name().into_owned(),
        evidence: standing.evidence.clone(),
        since: standing.since,
        lasted_ms: millis(standing.began.ago(now)),
        unread: standing.unread,
        well: standing.passing.map(|passing| passing.since),
        mild: standing.mild,
        ends_with_reset: standing.ends_with_reset,
        grace_ms: millis(standing.grace),
    }
}

/// Restores findings. If two saved names are the same check in this build, the finding that passes
/// least is kept, and of two the older one.
fn restore_standings(saved: Vec<SavedStanding>, now: Now) -> BTreeMap<Check, Standing> {
    let mut standings = BTreeMap::<Check, Standing>::new();
    for (check, standing) in saved.into_iter().filter_map(|s| restore_standing(s, now)) {
        let rank = |standing: &Standing| (standing.passing.is_some(), standing.since);
        let old = standings.get(&check);
        if old.is_none_or(|old| rank(&standing) < rank(old)) {
            standings.insert(check, standing);
        }
    }
    standings
}

/// Restores the counts of recurrences. If two saved names are the same check in this build, the
/// higher count and the later time are kept.
fn restore_begun(saved: Vec<SavedBegun>) -> BTreeMap<Flap, Begun> {
    let mut all = BTreeMap::<Flap, Begun>::new();
    for SavedBegun { what, times, last } in saved {
        let Some(flap) = Flap::named(&what) else {
            continue;
        };
        let begun = all.entry(flap).or_insert(Begun { times, last });
        begun.times = begun.times.max(times);
        begun.last = begun.last.max(last);
    }
    all
}

/// Restores one finding. `None` if this build does not know its check.
fn restore_standing(saved: SavedStanding, now: Now) -> Option<(Check, Standing)> {
    let saved = saved.marked();
    let lasted = Duration::from_millis(saved.lasted_ms);
    let passing = |since| Passing {
        count: 0,
        after: lasted,
        first: Moment::new(now),
        since,
    };
    let standing = Standing {
        evidence: saved.evidence,
        since: saved.since,
        // The age is saved, not the time: the wall clock may have been set meanwhile.
        began: Moment::earlier(lasted, now),
        passing: saved.well.map(passing),
        unread: saved.unread,
        mild: saved.mild,
        ends_with_reset: saved.ends_with_reset,
        grace: Duration::from_millis(saved.grace_ms),
    };
    Some((Check::named(&saved.check)?, standing))
}

/// Restores one event, also from the two forms of older agents.
fn restore_event(saved: &SavedEvent, now: Now) -> (EventCode, Happened) {
    let happened = Happened {
        since: saved.since,
        last: earlier(saved.ago, now),
        asked: saved.asked,
        counted: !saved.uncounted,
    };
    let old = || {
        let code = |number| EventCode::from((OLD_CLASS, number));
        saved.xid.map_or(EventCode::ECC_UNCORRECTED, code)
    };
    (saved.code.clone().unwrap_or_else(old), happened)
}

/// Returns the length in milliseconds; `u64::MAX` if there are more.
fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the point that many seconds before `now`.
fn earlier(seconds: u64, now: Now) -> Moment {
    Moment::earlier(Duration::from_secs(seconds), now)
}
