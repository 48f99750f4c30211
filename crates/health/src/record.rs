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
    events::RecordedEvent,
    moment::MonotonicMoment,
    readings::ReadingCounters,
    standing::{Finding, PassStreak},
};
use crate::{Check, HealthPolicy, Now, Observation};

/// Everything about one device that its verdict depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceRecord {
    /// Events that the driver reported, until a reset, an operator or time ends them.
    events: BTreeMap<EventCode, RecordedEvent>,
    /// Findings of the checks, until their check passes again. A finding that cannot be checked any
    /// more stays until it can be.
    standing: BTreeMap<Check, Finding>,
    /// Number of times that each fault began recently, for the doubling of the hold-down.
    begun: BTreeMap<RecurrenceKey, Recurrence>,
    /// True if the device was absent, or was reset by the agent, and has not been seen since. The
    /// next look that finds it ends everything that a reset ends.
    away: bool,
    /// True if the driver asked for a recovery action when that was last read.
    asked: bool,
    /// Counters of the last readings.
    counters: ReadingCounters,
    /// Newest values of the counters that a reset sets back.
    since_reset: SinceReset,
    /// Checks that passed at least once since the agent started. Late state from an earlier agent
    /// does not override them.
    passed: BTreeSet<Check>,
    /// Checks that the device does not support, by tier.
    unsupported: BTreeMap<Tier, Vec<String>>,
    /// Cordon by an operator, if there is one.
    cordon: Option<ActiveCordon>,
    /// Release by an operator or by the agent, if there is one.
    release: Option<ActiveRelease>,
    /// Foreign process that was found on the device, while the device is withheld for it.
    residue: Option<Residue>,
    /// True if something changed that must be saved but does not show in the verdict.
    unsaved: bool,
}

/// A fault whose beginnings are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RecurrenceKey {
    Check(Check),
    Residue,
}

/// Number of beginnings of a fault, and the time of the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Recurrence {
    times: u32,
    last: Timestamp,
}

/// A cordon: an operator took the device out of service.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ActiveCordon {
    reason: String,
    since: Timestamp,
}

/// A release: no probe may touch the device until this wall-clock time. Afterwards the device stays
/// out until a probe has looked at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ActiveRelease {
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
    found: MonotonicMoment,
}

// === impl DeviceRecord ===

impl DeviceRecord {
    /// Takes in the observed state of the device.
    pub fn observe(&mut self, sight: Observation<'_>, policy: &HealthPolicy, now: Now) {
        self.drop_expired(policy, now);
        match sight.tells() {
            // A release ends with the first look after its time, not with the time itself: an
            // operator may have left the device in any state.
            true => self.release = self.release.filter(|release| now.wall < release.until),
            false => self.recount(),
        }
        match sight {
            Observation::Seen(failures) => match failures.iter().find(|failure| failure.fatal) {
                Some(failure) => self.record_absence(Check::Lost, failure.to_string(), policy, now),
                None => self.recover(policy, now),
            },
            Observation::Unreadable(failure) => {
                self.record_absence(Check::Lost, failure.to_string(), policy, now)
            }
            Observation::Missing(why) => {
                self.record_absence(Check::Gone, why.to_owned(), policy, now)
            }
            Observation::NoDriver(why) => {
                // Without a driver nothing can hang, and the probe that reported this runs.
                let blind = |check: &Check| check.tier() == Tier::Present && !check.is_absence();
                self.standing.retain(|check, _| !blind(check));
                self.record_failure(Check::Gone, why.to_owned(), policy, now);
            }
            Observation::Stuck(call) => {
                let evidence = format!("{} has not returned since {:.0}", call.call, call.since);
                self.doubt(evidence, policy, now);
            }
            Observation::DriverFailed(why) => self.doubt(why.to_owned(), policy, now),
            Observation::Unreported(failure) => {
                self.doubt(
                    format!("its card does not tell of it: {failure}"),
                    policy,
                    now,
                );
            }
            Observation::Unmonitored(why) => {
                self.record_failure(Check::MonitorDown, why.to_owned(), policy, now)
            }
        }
    }

    /// Takes in an event that the driver reported.
    pub fn happen(&mut self, event: EventCode, policy: &HealthPolicy, now: Now) {
        self.drop_expired(policy, now);
        self.keep_event(event, policy, now);
    }

    /// Takes in the readings of a check-up. A value that was not read changes nothing. A call that
    /// reports the device as lost counts as a look that found it lost.
    pub fn record_reading(&mut self, reading: &Reading, policy: &HealthPolicy, now: Now) {
        self.drop_expired(policy, now);
        if let Some(failure) = reading.failures.iter().find(|failure| failure.fatal) {
            self.record_absence(Check::Lost, failure.to_string(), policy, now);
        }
        self.check_reading(reading, policy, now);
    }

    /// Cordons the device. A second cordon replaces the reason and keeps the time.
    pub fn add_cordon(&mut self, reason: &str, now: Now) {
        let since = self.cordon.as_ref().map_or(now.wall, |cordon| cordon.since);
        self.cordon = Some(ActiveCordon {
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
    pub fn end_cordon(&mut self) {
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
    pub fn release_to_operator(&mut self, until: Timestamp, now: Now) {
        self.act();
        self.give_up(until, false, now);
    }

    /// Releases the device to the agent itself until `until`, for a reset before a container
    /// starts. Adds a warning and no cause, so that the list for the kubelet does not change. If no
    /// probe has looked at the device by then, it is out as after any release. Ends no event: the
    /// reset may fail.
    pub fn release_to_agent(&mut self, until: Timestamp, now: Now) {
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
        self.release = Some(ActiveRelease { since, until, own });
    }

    /// Ends the release: a probe looks at the device.
    pub fn end_release(&mut self) {
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
    pub fn residue(&mut self, evidence: &str, policy: &HealthPolicy, now: Now) {
        self.drop_expired(policy, now);
        let since = self.residue.as_ref().map_or(now.wall, |old| old.since);
        self.count_beginning(RecurrenceKey::Residue, policy, now);
        self.residue = Some(Residue {
            evidence: evidence.to_owned(),
            since,
            found: MonotonicMoment::new(now),
        });
    }

    /// Ends the withholding: no foreign process is on the device any more.
    pub fn clear_residue(&mut self) {
        self.residue = None;
    }

    /// Takes in a reload of the driver, or a reboot of the node: ends everything that a reset ends,
    /// and drops all counters.
    pub fn record_driver_reload(&mut self, policy: &HealthPolicy) {
        self.end_events_by_reset(policy);
        self.standing
            .retain(|check, standing| !check.ends_with_reset() && !standing.ends_with_reset);
        // NVML's counters start at 0 with each load of the driver: energy ("since the driver was
        // last reloaded", nvmlDeviceGetTotalEnergyConsumption) and volatile ECC counts
        // (NVML_VOLATILE_ECC). A comparison across the reload would be wrong.
        self.counters = ReadingCounters::default();
        self.since_reset = SinceReset::default();
        self.asked = false;
    }

    /// Returns the time since a fault of that kind began. `None` if there is none, or if its check
    /// passes at present.
    pub fn finding_age(&self, kind: CauseKind, now: Now) -> Option<Duration> {
        let of_kind = |(check, _): &(&Check, &Finding)| check.cause_kind() == kind;
        let mut standing = self.standing.iter().filter(of_kind);
        let (_, standing) = standing.find(|(_, standing)| standing.passing.is_none())?;
        Some(standing.began.ago(now))
    }

    /// True if another look now would bring a finding nearer to the end of its hold-down. False
    /// while the device is released.
    pub fn wants_look(&self, policy: &HealthPolicy, now: Now) -> bool {
        let gains = |(check, standing): (&Check, &Finding)| {
            let run = standing.passing.filter(|passing| passing.count > 0);
            let (passes, hold) = self.needs(check, policy, now);
            let gains = |run: PassStreak| run.count < passes || run.first.ago(now) >= hold;
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
    pub fn unsupported_checks(&self) -> impl Iterator<Item = (Tier, &[String])> {
        let tiers = self.unsupported.iter();
        tiers.map(|(tier, names)| (*tier, names.as_slice()))
    }
}

#[cfg(test)]
mod tests;
