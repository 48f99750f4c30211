//! What is held against one device, and when it ends.

mod events;
mod moment;
mod persist;
mod readings;
mod since_reset;
mod standing;
mod verdict;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use model::{CauseKind, EventCode, Reading, SinceReset, Tier};

use self::{
    events::Happened,
    moment::Moment,
    readings::Counters,
    standing::{Passing, Standing},
};
use crate::{Check, Now, Policy, Sight};

/// The history of one device, as far as it matters for its verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// What the driver told of the device by itself, until something ended it.
    events: BTreeMap<EventCode, Happened>,
    /// What the checks found, until they pass again. Trouble that nobody can look at any more
    /// stands until somebody has looked.
    standing: BTreeMap<Check, Standing>,
    /// How often each trouble began lately.
    begun: BTreeMap<Flap, Begun>,
    /// Whether the device is away since it was last seen, or was reset: what a reset ends has
    /// ended when it is seen again.
    away: bool,
    /// Whether the driver asked for an action when it was last read.
    asked: bool,
    /// What the last readings counted.
    counters: Counters,
    /// What was last counted of all that a reset sets back.
    since_reset: SinceReset,
    /// The checks of readings that passed since the agent runs.
    passed: BTreeSet<Check>,
    /// What the device does not support, by tier.
    unsupported: BTreeMap<Tier, Vec<String>>,
    /// An operator took it out.
    cordon: Option<Cordon>,
    /// An operator has it.
    release: Option<Release>,
    /// A foreign process was on it.
    residue: Option<Residue>,
    /// Whether something changed that is to be kept and that a verdict need not show.
    unsaved: bool,
}

/// What can begin again and again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Flap {
    Check(Check),
    Residue,
}

/// How often trouble began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Begun {
    times: u32,
    last: Timestamp,
}

/// An operator took the device out.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cordon {
    reason: String,
    since: Timestamp,
}

/// An operator has the device, until then by the wall clock; then it waits for a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Release {
    since: Timestamp,
    until: Timestamp,
    /// Whether it is the agent that has it.
    own: bool,
}

/// A foreign process was found, and the device is withheld for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Residue {
    evidence: String,
    since: Timestamp,
    found: Moment,
}

// === impl Record ===

impl Record {
    /// Takes in how the device looks now.
    pub fn see(&mut self, sight: Sight<'_>, policy: &Policy, now: Now) {
        self.settle(policy, now);
        match sight.tells() {
            true => self.release = self.release.filter(|release| now.wall < release.until),
            false => self.recount(),
        }
        match sight {
            Sight::Seen(failures) => match failures.iter().find(|failure| failure.fatal) {
                Some(failure) => self.lose(Check::Lost, failure.to_string(), policy, now),
                None => self.recover(policy, now),
            },
            Sight::Unreadable(failure) => self.lose(Check::Lost, failure.to_string(), policy, now),
            Sight::Missing(why) => self.lose(Check::Gone, why.to_owned(), policy, now),
            Sight::NoDriver(why) => {
                let blind = |check: &Check| check.tier() == Tier::Present && !check.is_absence();
                self.standing.retain(|check, _| !blind(check));
                self.fail(Check::Gone, why.to_owned(), policy, now);
            }
            Sight::Stuck(call) => {
                let evidence = format!("{} has not returned since {:.0}", call.call, call.since);
                self.doubt(evidence, policy, now);
            }
            Sight::Failed(why) => self.doubt(why.to_owned(), policy, now),
            Sight::Untold(failure) => {
                self.doubt(
                    format!("its card does not tell of it: {failure}"),
                    policy,
                    now,
                );
            }
            Sight::Unwatched(why) => self.fail(Check::MonitorDown, why.to_owned(), policy, now),
        }
    }

    /// Takes in what the driver told.
    pub fn happen(&mut self, event: EventCode, policy: &Policy, now: Now) {
        self.settle(policy, now);
        self.note(event, policy, now);
    }

    /// Takes in what a check-up read. What was not read changes nothing; a call that says that the
    /// device is lost counts as such a look.
    pub fn read(&mut self, reading: &Reading, policy: &Policy, now: Now) {
        self.settle(policy, now);
        if let Some(failure) = reading.failures.iter().find(|failure| failure.fatal) {
            self.lose(Check::Lost, failure.to_string(), policy, now);
        }
        self.examine(reading, policy, now);
    }

    /// An operator takes the device out. A second reason replaces the first.
    pub fn cordon(&mut self, reason: &str, now: Now) {
        let since = self.cordon.as_ref().map_or(now.wall, |cordon| cordon.since);
        self.cordon = Some(Cordon {
            reason: reason.to_owned(),
            since,
        });
    }

    /// Whether an operator took the device out.
    pub fn is_cordoned(&self) -> bool {
        self.cordon.is_some()
    }

    /// An operator gives the device back, and vouches for it: events are forgotten, with them the
    /// findings that could not be read lately, and how often trouble began. What a check still
    /// finds stands.
    pub fn uncordon(&mut self) {
        self.cordon = None;
        self.events.clear();
        self.begun.clear();
        self.standing.retain(|check, standing| {
            // An idle link shows nothing, and a device that is out stays idle.
            standing.unread.is_none() && *check != Check::PcieGeneration
        });
    }

    /// An operator has the device until then; nobody looks at it, and it waits for a look
    /// afterwards. Events end if the driver asks for nothing then.
    pub fn release(&mut self, until: Timestamp, now: Now) {
        self.act();
        self.give_up(until, false, now);
    }

    /// The agent itself has the device until then, to have it reset before a container starts on
    /// it. The verdict stays what it was, with a warning, so that what the node offers does not
    /// change for a moment; if nobody has looked by then, the device is out as after a release.
    /// That ends no event: the reset may fail.
    pub fn lend(&mut self, until: Timestamp, now: Now) {
        self.give_up(until, true, now);
    }

    /// The agent has had the device reset: what that ends has ended when it is seen again.
    pub fn was_reset(&mut self) {
        self.away = true;
    }

    fn give_up(&mut self, until: Timestamp, own: bool, now: Now) {
        self.recount();
        let since = self.release.map_or(now.wall, |release| release.since);
        self.release = Some(Release { since, until, own });
    }

    /// The operator is done, and somebody looks.
    pub fn resume(&mut self) {
        self.release = None;
    }

    /// The operator is done; the device waits for a look.
    pub fn await_look(&mut self, now: Now) {
        if let Some(release) = &mut self.release {
            release.until = release.until.min(now.wall);
        }
    }

    /// A foreign process was found on the device when it was about to be handed over. It is
    /// withheld for a while, twice as long each time.
    pub fn residue(&mut self, evidence: &str, policy: &Policy, now: Now) {
        self.settle(policy, now);
        let since = self.residue.as_ref().map_or(now.wall, |old| old.since);
        self.begin(Flap::Residue, policy, now);
        self.residue = Some(Residue {
            evidence: evidence.to_owned(),
            since,
            found: Moment::new(now),
        });
    }

    /// No foreign process is on the device any more.
    pub fn clean(&mut self) {
        self.residue = None;
    }

    /// The driver was loaded anew, or the node was started anew: what a reset ends has ended.
    pub fn reloaded(&mut self, policy: &Policy) {
        self.reset(policy);
        self.standing
            .retain(|check, standing| !check.ends_with_reset() && !standing.ends_with_reset);
        self.counters = Counters::default();
        self.since_reset = SinceReset::default();
        self.asked = false;
    }

    /// How long trouble of that kind has been standing, if there is any and it does not pass.
    pub fn lasting(&self, kind: CauseKind, now: Now) -> Option<Duration> {
        let of_kind = |(check, _): &(&Check, &Standing)| check.kind() == kind;
        let mut standing = self.standing.iter().filter(of_kind);
        let (_, standing) = standing.find(|(_, standing)| standing.passing.is_none())?;
        Some(standing.began.ago(now))
    }

    /// Whether another look at the device now would bring it nearer to the end of its hold-down.
    pub fn wants_look(&self, policy: &Policy, now: Now) -> bool {
        let gains = |(check, standing): (&Check, &Standing)| {
            let run = standing.passing.filter(|passing| passing.count > 0);
            let (passes, hold) = self.needs(check, policy, now);
            let gains = |run: Passing| run.count < passes || run.first.ago(now) >= hold;
            check.tier() == Tier::Present && run.is_some_and(gains)
        };
        self.release.is_none() && self.standing.iter().any(gains)
    }

    /// Whether something changed since this was asked that is to be kept, and that no change of
    /// the verdict need tell of.
    pub fn take_unsaved(&mut self) -> bool {
        std::mem::take(&mut self.unsaved)
    }

    /// What the device does not support, by tier, as its last check-ups told.
    pub fn unsupported(&self) -> impl Iterator<Item = (Tier, &[String])> {
        let tiers = self.unsupported.iter();
        tiers.map(|(tier, names)| (*tier, names.as_slice()))
    }
}

#[cfg(test)]
mod tests;
