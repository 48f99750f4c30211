//! Derives the verdict of a device at one moment from its record.

use std::time::Duration;

use config::{MonitorLoss, Weight};
use model::{Cause, CauseKind, State, Tier, Verdict};

use super::{DeviceRecord, RecurrenceKey, standing::Finding};
use crate::{Check, HealthPolicy, Now, policy};

// === impl DeviceRecord ===

impl DeviceRecord {
    /// Returns the verdict at this moment.
    pub fn verdict(&self, policy: &HealthPolicy, now: Now) -> Verdict {
        let mut verdict = Verdict::default();
        let mut add = |state: Option<State>, cause: Cause| match state {
            Some(state) => {
                verdict.state = verdict.state.max(state);
                verdict.causes.push(cause);
            }
            None => verdict.warnings.push(cause),
        };
        for (state, cause) in self.in_hand(now) {
            add(state, cause);
        }
        for (weight, cause) in self.event_causes(policy, now) {
            add((weight == Weight::Out).then_some(State::Unhealthy), cause);
        }
        for (check, standing) in &self.standing {
            if let Some(state) = weigh(check, standing, policy, now) {
                add(state, self.describe_finding(check, standing, policy, now));
            }
        }
        if let Some(cause) = self.withheld(policy, now) {
            add(Some(State::Unhealthy), cause);
        }
        verdict
    }

    /// Returns the time for which the device is still withheld because of a foreign process. `None`
    /// if it is not withheld.
    pub(super) fn residue_left(&self, policy: &HealthPolicy, now: Now) -> Option<Duration> {
        let found = self.residue.as_ref()?.found;
        let left = self.residue_hold(policy).checked_sub(found.ago(now))?;
        (!left.is_zero()).then_some(left)
    }

    fn residue_hold(&self, policy: &HealthPolicy) -> Duration {
        let times = self.times(&RecurrenceKey::Residue);
        policy::doubled(policy, policy.health.residue_hold, times)
    }

    /// Returns the causes from orders of an operator or of the agent, each with the state that it
    /// implies, or with none for a warning.
    fn in_hand(&self, now: Now) -> Vec<(Option<State>, Cause)> {
        let mut causes = Vec::new();
        if let Some(cordon) = &self.cordon {
            let cause = Cause {
                kind: CauseKind::Cordoned,
                evidence: match cordon.reason.trim() {
                    "" => "an operator cordoned it".to_owned(),
                    reason => format!("an operator cordoned it: {reason}"),
                },
                since: cordon.since,
                ends_when: "an operator uncordons it".to_owned(),
            };
            causes.push((Some(State::Maintenance), cause));
        }
        if let Some(release) = self.release {
            let maintenance = Some(State::Maintenance);
            let lasts = now.wall < release.until;
            let (state, evidence, ends_when) = match (lasts, release.own) {
                (true, true) => (
                    None,
                    "it is being reset before a container starts on it; nobody looks at it",
                    format!(
                        "a probe has looked at it; {:.0} at the latest",
                        release.until
                    ),
                ),
                (true, false) => (
                    maintenance,
                    "an operator has it; nobody looks at it",
                    format!("the operator is done, or it is {:.0}", release.until),
                ),
                (false, _) => (
                    maintenance,
                    "it was released, and no probe has looked at it since",
                    "a probe has looked at it".to_owned(),
                ),
            };
            let cause = Cause {
                kind: CauseKind::Released,
                evidence: evidence.to_owned(),
                since: release.since,
                ends_when,
            };
            causes.push((state, cause));
        }
        causes
    }

    /// Returns the cause of a device that is withheld because of a foreign process.
    fn withheld(&self, policy: &HealthPolicy, now: Now) -> Option<Cause> {
        let residue = self.residue.as_ref()?;
        self.residue_left(policy, now)?;
        let seconds = self.residue_hold(policy).as_secs_f64();
        Some(Cause {
            kind: CauseKind::Residue,
            evidence: residue.evidence.clone(),
            since: residue.since,
            ends_when: format!("nobody is on it any more, or {seconds} s after it was found"),
        })
    }

    /// Describes a finding as a cause, with its hold-down.
    fn describe_finding(
        &self,
        check: &Check,
        standing: &Finding,
        policy: &HealthPolicy,
        now: Now,
    ) -> Cause {
        let mut evidence = standing.evidence.clone();
        if let Some(unread) = standing.unread {
            evidence.push_str(&format!(" (not read any more since {unread:.0})"));
        }
        let mut ends_when = check.ends_when().into_owned();
        if standing.ends_with_reset {
            ends_when.push_str(", or is loaded anew");
        }
        let (passes, hold) = self.needs(check, policy, now);
        match check.tier() {
            Tier::Present if passes > 1 || !hold.is_zero() => {
                let seconds = hold.as_secs_f64();
                ends_when.push_str(&format!(", at {passes} looks in a row over {seconds} s"));
            }
            _ if !hold.is_zero() => {
                let seconds = hold.as_secs_f64();
                ends_when.push_str(&format!(", for {seconds} s"));
            }
            _ => {}
        }
        if let Some(passing) = standing.passing {
            ends_when.push_str(&format!("; it has been well since {:.0}", passing.since));
        }
        Cause {
            kind: check.cause_kind(),
            evidence,
            since: standing.since,
            ends_when,
        }
    }
}

/// Returns the effect of a finding now: `None` for none yet, `Some(None)` for a warning, or a
/// state.
fn weigh(
    check: &Check,
    standing: &Finding,
    policy: &HealthPolicy,
    now: Now,
) -> Option<Option<State>> {
    let lasted = standing.began.ago(now);
    match check {
        // A monitor that is down says nothing about the device. Taking devices out for it would
        // empty the node for a crash of the probe (ROCm/k8s-device-plugin PR 195); calling them
        // Healthy would hide the crash (NVIDIA/k8s-device-plugin issue 1640).
        Check::MonitorDown
            if policy.health.on_monitor_loss == MonitorLoss::Drain
                && lasted >= policy.health.monitor_loss_grace =>
        {
            Some(Some(State::Unhealthy))
        }
        Check::MonitorDown => Some(Some(State::Unknown)),
        Check::NotAnswering if lasted < policy.health.unanswered_grace => {
            Some(Some(State::Unknown))
        }
        _ if policy::is_off(policy, check.tier()) || standing.is_in_grace(now) => None,
        _ => match policy::check_weight(policy, check) {
            Weight::Out if !standing.mild => Some(Some(State::Unhealthy)),
            Weight::Out | Weight::Warn => Some(None),
            Weight::Off => None,
        },
    }
}
