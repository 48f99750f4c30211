//! Saves and restores a record. A restart of the agent neither heals nor breaks a device.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use model::{EventCode, Tier};

use super::{
    ActiveCordon, ActiveRelease, DeviceRecord, MonotonicMoment, Recurrence, RecurrenceKey, Residue,
    events::RecordedEvent,
    readings::ReadingCounters,
    standing::{Finding, PassStreak},
};
use crate::{
    Check, Continuity, HealthPolicy, Now, SavedDevice,
    saved::{SavedCordon, SavedEvent, SavedFinding, SavedRecurrence, SavedRelease, SavedResidue},
};

/// Class of the events that older agents saved by number alone.
const OLD_CLASS: &str = "xid";

// === impl DeviceRecord ===

impl DeviceRecord {
    /// Returns the state to save. `MonitorDown` is left out: it belongs to the running agent.
    pub fn to_saved(&self, now: Now) -> SavedDevice {
        let ago = |then: MonotonicMoment| then.ago(now).as_secs();
        let events = self.events.iter().map(|(event, happened)| SavedEvent {
            code: Some(event.clone()),
            // An older agent reads this field after a rollback.
            xid: event
                .code_number()
                .filter(|_| event.code_class() == OLD_CLASS),
            since: happened.since,
            ago: ago(happened.last),
            asked: happened.asked,
            uncounted: !happened.counted,
        });
        let standing = self.standing.iter();
        let standing = standing.filter(|(check, _)| **check != Check::MonitorDown);
        let begun = self.begun.iter().map(|(flap, begun)| SavedRecurrence {
            what: flap.saved_key().into_owned(),
            times: begun.times,
            last: begun.last,
        });
        SavedDevice {
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
                .map(|ActiveRelease { since, until, .. }| SavedRelease { since, until }),
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
    pub fn from_saved(
        saved: SavedDevice,
        continuity: Continuity,
        policy: &HealthPolicy,
        now: Now,
    ) -> Self {
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
            counters: ReadingCounters::from_link_errors(saved.link_errors),
            since_reset: saved.since_reset,
            cordon: saved
                .cordon
                .map(|SavedCordon { reason, since }| ActiveCordon { reason, since }),
            release: saved
                .release
                .map(|SavedRelease { since, until }| ActiveRelease {
                    since,
                    until,
                    own: false,
                }),
            residue: saved.residue.map(|residue| Residue {
                found: seconds_before(residue.ago, now),
                evidence: residue.evidence,
                since: residue.since,
            }),
            ..Self::default()
        };
        record.trim_conditions(policy);
        if !continuity.same_boot || !continuity.same_driver {
            record.record_driver_reload(policy);
        }
        // A reboot ends a release: whatever the operator did to the card is over.
        if !continuity.same_boot {
            record.end_release();
        }
        record
    }

    /// Takes over the saved state of an earlier agent when the device has been seen already. What
    /// this agent knows is newer and takes precedence.
    pub fn merge_saved(
        &mut self,
        saved: SavedDevice,
        continuity: Continuity,
        policy: &HealthPolicy,
        now: Now,
    ) {
        let mut old = Self::from_saved(saved, continuity, policy, now);
        // The device was absent then or since, and is present now, which is a reset.
        if old.away || self.begun.contains_key(&RecurrenceKey::Check(Check::Lost)) {
            old.end_events_by_reset(policy);
        }
        old.record_counters(&self.since_reset, policy);
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

// === impl RecurrenceKey ===

impl RecurrenceKey {
    /// Name in the state file.
    fn saved_key(&self) -> Cow<'static, str> {
        match self {
            Self::Check(check) => check.saved_name(),
            Self::Residue => SavedRecurrence::RESIDUE.into(),
        }
    }

    /// Parses a name from the state file. `None` for a name of another build.
    fn from_saved_key(name: &str) -> Option<Self> {
        match name {
            SavedRecurrence::RESIDUE => Some(Self::Residue),
            name => Check::from_saved_name(name).map(Self::Check),
        }
    }
}

fn save_standing(check: &Check, standing: &Finding, now: Now) -> SavedFinding {
    SavedFinding {
        check: check.saved_name().into_owned(),
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
fn restore_standings(saved: Vec<SavedFinding>, now: Now) -> BTreeMap<Check, Finding> {
    let mut standings = BTreeMap::<Check, Finding>::new();
    for (check, standing) in saved.into_iter().filter_map(|s| restore_standing(s, now)) {
        let rank = |standing: &Finding| (standing.passing.is_some(), standing.since);
        let old = standings.get(&check);
        if old.is_none_or(|old| rank(&standing) < rank(old)) {
            standings.insert(check, standing);
        }
    }
    standings
}

/// Restores the counts of recurrences. If two saved names are the same check in this build, the
/// higher count and the later time are kept.
fn restore_begun(saved: Vec<SavedRecurrence>) -> BTreeMap<RecurrenceKey, Recurrence> {
    let mut all = BTreeMap::<RecurrenceKey, Recurrence>::new();
    for SavedRecurrence { what, times, last } in saved {
        let Some(flap) = RecurrenceKey::from_saved_key(&what) else {
            continue;
        };
        let begun = all.entry(flap).or_insert(Recurrence { times, last });
        begun.times = begun.times.max(times);
        begun.last = begun.last.max(last);
    }
    all
}

/// Restores one finding. `None` if this build does not know its check.
fn restore_standing(saved: SavedFinding, now: Now) -> Option<(Check, Finding)> {
    let saved = saved.upgrade_condition();
    let lasted = Duration::from_millis(saved.lasted_ms);
    let passing = |since| PassStreak {
        count: 0,
        after: lasted,
        first: MonotonicMoment::new(now),
        since,
    };
    let standing = Finding {
        evidence: saved.evidence,
        since: saved.since,
        // The age is saved, not the time: the wall clock may have been set meanwhile.
        began: MonotonicMoment::before_now(lasted, now),
        passing: saved.well.map(passing),
        unread: saved.unread,
        mild: saved.mild,
        ends_with_reset: saved.ends_with_reset,
        grace: Duration::from_millis(saved.grace_ms),
    };
    Some((Check::from_saved_name(&saved.check)?, standing))
}

/// Restores one event, also from the two forms of older agents.
fn restore_event(saved: &SavedEvent, now: Now) -> (EventCode, RecordedEvent) {
    let happened = RecordedEvent {
        since: saved.since,
        last: seconds_before(saved.ago, now),
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
fn seconds_before(seconds: u64, now: Now) -> MonotonicMoment {
    MonotonicMoment::before_now(Duration::from_secs(seconds), now)
}
