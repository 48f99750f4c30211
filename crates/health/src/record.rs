//! What is held against one device, and when it ends.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use model::{CallFailure, Cause, CauseKind, State, StuckCall, Verdict};

use crate::xid;

/// How long things may last before they weigh more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// A card whose driver does not answer, or fails, is Unknown for this long, then Unhealthy.
    pub unanswered: Duration,
}

/// This moment: for people, and on a clock that never jumps.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The wall clock.
    pub wall: Timestamp,
    /// Since the agent started.
    pub uptime: Duration,
}

/// How a device looks at this moment.
#[derive(Clone, Copy, Debug)]
pub enum Sight<'a> {
    /// Its probe reads it; these calls failed.
    Seen(&'a [CallFailure]),
    /// It is on the bus, and the driver does not let it be read.
    Unreadable(&'a CallFailure),
    /// A call on it, or one that concerns the whole driver, does not return.
    Stuck(&'a StuckCall),
    /// The driver as a whole does not work, and says so.
    Failed(&'a str),
    /// There is no driver any more, which says nothing of the device itself.
    NoDriver(&'a str),
    /// The driver works, and does not list it any more.
    Missing(&'a str),
    /// A partition that its card did not tell of, because this call failed.
    Untold(&'a CallFailure),
    /// Nobody looks: the probe does not run.
    Unwatched(&'a str),
}

/// The history of one device, as far as it matters for its verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Critical events since the device last went away and came back.
    events: Vec<Cause>,
    /// What is wrong at this moment, and since when on the clock that never jumps. Trouble that
    /// nobody can look at any more stands until somebody has looked.
    standing: BTreeMap<CauseKind, (Cause, Duration)>,
    /// Whether the device was away since its last event.
    away: bool,
}

// === impl Policy ===

impl Default for Policy {
    fn default() -> Self {
        Self {
            unanswered: Duration::from_secs(30),
        }
    }
}

// === impl Record ===

impl Record {
    /// Takes in how the device looks now.
    pub fn see(&mut self, sight: Sight<'_>, now: Now) {
        match sight {
            Sight::Seen(failures) => match failures.iter().find(|failure| failure.fatal) {
                Some(failure) => self.lose(CauseKind::Lost, failure.to_string(), now),
                None => self.recover(),
            },
            Sight::Unreadable(failure) => self.lose(CauseKind::Lost, failure.to_string(), now),
            Sight::Missing(why) => self.lose(CauseKind::Gone, why.to_owned(), now),
            Sight::NoDriver(why) => {
                self.standing.retain(|kind, _| is_absence(*kind));
                let ends_when = "the driver is there again and lists the device";
                self.stand(CauseKind::Gone, why.to_owned(), ends_when, now);
            }
            Sight::Stuck(call) => self.doubt(
                CauseKind::NotAnswering,
                format!("{} has not returned since {:.0}", call.call, call.since),
                "the device answers again when it is tried alone",
                now,
            ),
            Sight::Failed(why) => self.doubt(
                CauseKind::NotAnswering,
                why.to_owned(),
                "the driver works again",
                now,
            ),
            Sight::Untold(failure) => self.doubt(
                CauseKind::NotAnswering,
                format!("its card does not tell of it: {failure}"),
                "the card answers the call again",
                now,
            ),
            Sight::Unwatched(why) => self.stand(
                CauseKind::MonitorDown,
                why.to_owned(),
                "the probe reports again",
                now,
            ),
        }
    }

    /// Takes in an XID. Returns whether it is held against the device.
    pub fn xid(&mut self, number: u64, now: Now) -> bool {
        if xid::meaning(number) == xid::Meaning::Application {
            return false;
        }
        let evidence = xid::describe(number);
        // Of a card that is away it tells why; of one that is back it is news.
        self.away &= self.standing.keys().copied().any(is_absence);
        if self.events.iter().all(|cause| cause.evidence != evidence) {
            self.events.push(Cause {
                kind: CauseKind::Event,
                evidence,
                since: now.wall,
                ends_when: "the card was reset: it left the driver and came back".to_owned(),
            });
        }
        true
    }

    /// The verdict at this moment.
    pub fn verdict(&self, policy: Policy, now: Now) -> Verdict {
        let state = |(cause, since): &(Cause, Duration)| match cause.kind {
            CauseKind::MonitorDown => State::Unknown,
            CauseKind::NotAnswering if now.uptime.saturating_sub(*since) < policy.unanswered => {
                State::Unknown
            }
            _ => State::Unhealthy,
        };
        let events = self.events.iter().map(|_| State::Unhealthy);
        let standing = self.standing.values();
        let mut causes = self.events.clone();
        causes.extend(standing.clone().map(|(cause, _)| cause.clone()));
        Verdict {
            state: standing.map(state).chain(events).max().unwrap_or_default(),
            causes,
            warnings: Vec::new(),
        }
    }

    /// How long trouble of that kind has been standing, if there is any.
    pub fn lasting(&self, kind: CauseKind, now: Now) -> Option<Duration> {
        let (_, since) = self.standing.get(&kind)?;
        Some(now.uptime.saturating_sub(*since))
    }

    /// The device is not there: that replaces every other trouble.
    fn lose(&mut self, kind: CauseKind, evidence: String, now: Now) {
        self.away = true;
        self.standing.retain(|standing, _| *standing == kind);
        self.stand(kind, evidence, "the driver lists the device again", now);
    }

    /// Somebody looked and could not tell: what was known before stands.
    fn doubt(&mut self, kind: CauseKind, evidence: String, ends_when: &str, now: Now) {
        self.standing.remove(&CauseKind::MonitorDown);
        self.stand(kind, evidence, ends_when, now);
    }

    fn recover(&mut self) {
        self.standing.clear();
        if std::mem::take(&mut self.away) {
            self.events.clear();
        }
    }

    /// Adds trouble; of the same kind it keeps its beginning.
    fn stand(&mut self, kind: CauseKind, evidence: String, ends_when: &str, now: Now) {
        let known = self.standing.get(&kind);
        let (since, started) = known.map_or((now.wall, now.uptime), |(c, t)| (c.since, *t));
        let cause = Cause {
            kind,
            evidence,
            since,
            ends_when: ends_when.to_owned(),
        };
        self.standing.insert(kind, (cause, started));
    }
}

/// Whether trouble of that kind means that the device is not there.
fn is_absence(kind: CauseKind) -> bool {
    matches!(kind, CauseKind::Lost | CauseKind::Gone)
}

#[cfg(test)]
mod tests;
