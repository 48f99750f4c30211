//! The record of one device: events, findings and operator orders, each until it ends.

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

/// Everything about one device that its verdict depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Events that the driver reported, until a reset, an operator or time ends them.
    events: BTreeMap<EventCode, Happened>,
    /// Findings of the checks, until their check passes again. A finding that cannot be checked any
    /// more stays until it can be.
    standing: BTreeMap<Check, Standing>,
    /// Number of times that each fault began recently, for the doubling of the hold-down.
    begun: BTreeMap<Flap, Begun>,
    /// True if the device was absent, or was reset by the agent, and has not been seen since. The
    /// next look that finds it ends everything that a reset ends.
    away: bool,
    /// True if the driver asked for a recovery action when that was last read.
    asked: bool,
    /// Counters of the last readings.
    counters: Counters,
    /// Newest values of the counters that a reset sets back.
    since_reset: SinceReset,
    /// Checks that passed at least once since the agent started. Late state from an earlier agent
    /// does not override them.
    passed: BTreeSet<Check>,
    /// Checks that the device does not support, by tier.
    unsupported: BTreeMap<Tier, Vec<String>>,
    /// Cordon by an operator, if there is one.
    cordon: Option<Cordon>,
    /// Release by an operator or by the agent, if there is one.
    release: Option<Release>,
    /// Foreign process that was found on the device, while the device is withheld for it.
    residue: Option<Residue>,
    /// True if something changed that must be saved but does not show in the verdict.
    unsaved: bool,
}

/// A fault whose beginnings are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Flap {
    Check(Check),
    Residue,
}

/// Number of beginnings of a fault, and the time of the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Begun {
    times: u32,
    last: Timestamp,
}

/// A cordon: an operator took the device out of service.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cordon {
    reason: String,
    since: Timestamp,
}

/// A release: no probe may touch the device until this wall-clock time. Afterwards the device stays
/// out until a probe has looked at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Release {
    since: Timestamp,
    until: Timestamp,
    /// True if the agent released the device to reset it; false for an operator.
    own: bool,
}

/// A foreign process was found on the device, and the device is withheld for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Residue {
    evidence: String,
    since: Timestamp,
    /// Time at which the process was found last; the withholding is counted from here.
    found: Moment,
}

// === impl Record ===

impl Record {
    /// Takes in the observed state of the device.
    pub fn see(&mut self, sight: Sight<'_>, policy: &Policy, now: Now) {
        self.settle(policy, now);
        match sight.tells() {
            // A release ends with the first look after its time, not with the time itself: an
            // operator may have left the device in any state.
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
                // Without a driver nothing can hang, and the probe that reported this runs.
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

    /// Takes in an event that the driver reported.
    pub fn happen(&mut self, event: EventCode, policy: &Policy, now: Now) {
        self.settle(policy, now);
        self.note(event, policy, now);
    }

    /// Takes in the readings of a check-up. A value that was not read changes nothing. A call that
    /// reports the device as lost counts as a look that found it lost.
    pub fn read(&mut self, reading: &Reading, policy: &Policy, now: Now) {
        self.settle(policy, now);
        if let Some(failure) = reading.failures.iter().find(|failure| failure.fatal) {
            self.lose(Check::Lost, failure.to_string(), policy, now);
        }
        self.examine(reading, policy, now);
    }

    /// Cordons the device. A second cordon replaces the reason and keeps the time.
    pub fn cordon(&mut self, reason: &str, now: Now) {
        let since = self.cordon.as_ref().map_or(now.wall, |cordon| cordon.since);
        self.cordon = Some(Cordon {
            reason: reason.to_owned(),
            since,
        });
    }

    /// True if an operator cordoned the device.
    pub fn is_cordoned(&self) -> bool {
        self.cordon.is_some()
    }

    /// Ends the cordon. The operator vouches for the device: events end, findings that could not be
    /// read lately end, and recurrences are forgotten. Findings that a check still makes stay.
    pub fn uncordon(&mut self) {
        self.cordon = None;
        self.events.clear();
        self.begun.clear();
        self.standing.retain(|check, standing| {
            // The PCIe generation is read only under load, and a device that is out of service
            // stays idle: its check would never pass.
            standing.unread.is_none() && *check != Check::PcieGeneration
        });
    }

    /// Releases the device to an operator until `until`. No probe looks at it meanwhile, and it
    /// stays out afterwards until one has. Events end if the driver then asks for no recovery
    /// action.
    pub fn release(&mut self, until: Timestamp, now: Now) {
        self.act();
        self.give_up(until, false, now);
    }

    /// Releases the device to the agent itself until `until`, for a reset before a container
    /// starts. Adds a warning and no cause, so that the list for the kubelet does not change. If no
    /// probe has looked at the device by then, it is out as after any release. Ends no event: the
    /// reset may fail.
    pub fn lend(&mut self, until: Timestamp, now: Now) {
        // A device that turns Unhealthy for a moment lowers the node's allocatable resources, and
        // marks the pod that is about to start (kubelet: pkg/kubelet/cm/devicemanager/manager.go,
        // genericDeviceUpdateCallback and UpdateAllocatedResourcesStatus).
        self.give_up(until, true, now);
    }

    /// Marks the device as reset by the agent. The next look that finds the device ends everything
    /// that a reset ends.
    pub fn was_reset(&mut self) {
        self.away = true;
    }

    /// Sets or prolongs the release. A second release keeps the time of the first.
    fn give_up(&mut self, until: Timestamp, own: bool, now: Now) {
        self.recount();
        let since = self.release.map_or(now.wall, |release| release.since);
        self.release = Some(Release { since, until, own });
    }

    /// Ends the release: a probe looks at the device.
    pub fn resume(&mut self) {
        self.release = None;
    }

    /// Ends the time of the release. The device stays out until a probe has looked at it.
    pub fn await_look(&mut self, now: Now) {
        if let Some(release) = &mut self.release {
            release.until = release.until.min(now.wall);
        }
    }

    /// Records a foreign process that was found when the device was about to be handed over. The
    /// device is withheld for a while, twice as long at each recurrence.
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

    /// Ends the withholding: no foreign process is on the device any more.
    pub fn clean(&mut self) {
        self.residue = None;
    }

    /// Takes in a reload of the driver, or a reboot of the node: ends everything that a reset ends,
    /// and drops all counters.
    pub fn reloaded(&mut self, policy: &Policy) {
        self.reset(policy);
        self.standing
            .retain(|check, standing| !check.ends_with_reset() && !standing.ends_with_reset);
        // NVML's counters start at 0 with each load of the driver: energy ("since the driver was
        // last reloaded", nvmlDeviceGetTotalEnergyConsumption) and volatile ECC counts
        // (NVML_VOLATILE_ECC). A comparison across the reload would be wrong.
        self.counters = Counters::default();
        self.since_reset = SinceReset::default();
        self.asked = false;
    }

    /// Returns the time since a fault of that kind began. `None` if there is none, or if its check
    /// passes at present.
    pub fn lasting(&self, kind: CauseKind, now: Now) -> Option<Duration> {
        let of_kind = |(check, _): &(&Check, &Standing)| check.kind() == kind;
        let mut standing = self.standing.iter().filter(of_kind);
        let (_, standing) = standing.find(|(_, standing)| standing.passing.is_none())?;
        Some(standing.began.ago(now))
    }

    /// True if another look now would bring a finding nearer to the end of its hold-down. False
    /// while the device is released.
    pub fn wants_look(&self, policy: &Policy, now: Now) -> bool {
        let gains = |(check, standing): (&Check, &Standing)| {
            let run = standing.passing.filter(|passing| passing.count > 0);
            let (passes, hold) = self.needs(check, policy, now);
            let gains = |run: Passing| run.count < passes || run.first.ago(now) >= hold;
            check.tier() == Tier::Present && run.is_some_and(gains)
        };
        self.release.is_none() && self.standing.iter().any(gains)
    }

    /// Returns true once if something must be saved that no change of the verdict shows.
    pub fn take_unsaved(&mut self) -> bool {
        std::mem::take(&mut self.unsaved)
    }

    /// Iterates over the checks that the device does not support, by tier, as its last check-ups
    /// reported them.
    pub fn unsupported(&self) -> impl Iterator<Item = (Tier, &[String])> {
        let tiers = self.unsupported.iter();
        tiers.map(|(tier, names)| (*tier, names.as_slice()))
    }
}

#[cfg(test)]
mod tests;
