//! Timers of the tiers of checks.

use std::time::Duration;

use model::Tier;
use tokio::time::Instant;

use crate::protocol::CheckPeriods;

/// Timers of the tiers that the probe checks. A tier with the period zero has none.
#[derive(Debug)]
pub(super) struct TierTimers(Vec<(Tier, PeriodTimer)>);

/// Periodic timer.
#[derive(Debug)]
pub(super) struct PeriodTimer {
    period: Duration,
    due: Instant,
}

// === impl TierTimers ===

impl TierTimers {
    /// Creates the timers, due at `now`. A period of zero turns a tier off.
    pub(super) fn new(periods: &CheckPeriods, now: Instant) -> Self {
        let tiers = [
            (Tier::Working, periods.working),
            (Tier::Performing, periods.performing),
            (Tier::Trend, periods.trend),
        ];
        let clocks = tiers.into_iter().filter(|(_, period)| !period.is_zero());
        Self(
            clocks
                .map(|(tier, p)| (tier, PeriodTimer::new(p, now)))
                .collect(),
        )
    }

    /// Returns the tiers that are due, and sets them to be due one period after `now`.
    pub(super) fn take_due_tiers(&mut self, now: Instant) -> Vec<Tier> {
        let due = self.0.iter_mut().filter_map(|(tier, clock)| {
            let is_due = clock.take_due(now);
            is_due.then_some(*tier)
        });
        due.collect()
    }

    /// Makes all tiers due now: their last results no longer apply.
    pub(super) fn make_due(&mut self, now: Instant) {
        for (_, clock) in &mut self.0 {
            clock.due = clock.due.min(now);
        }
    }

    /// Makes one tier due now.
    pub(super) fn hurry_tier(&mut self, tier: Tier, now: Instant) {
        for (_, clock) in self.0.iter_mut().filter(|(of, _)| *of == tier) {
            clock.due = clock.due.min(now);
        }
    }

    /// Returns the time of the next tier that is due; `None` if all tiers are off.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.0.iter().map(|(_, clock)| clock.due).min()
    }
}

// === impl PeriodTimer ===

impl PeriodTimer {
    /// Creates a timer that is first due at `due`.
    pub(super) fn new(period: Duration, due: Instant) -> Self {
        Self { period, due }
    }

    /// Returns true if the timer is due, and then sets it to one period after `now`.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        let is_due = self.due <= now;
        if is_due {
            // Not `due + period`: a thread that was blocked would run several checks in a row.
            self.due = now + self.period;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tier_has_its_own_clock_and_zero_is_never() {
        let now = Instant::now();
        let periods = CheckPeriods {
            working: Duration::from_secs(60),
            performing: Duration::from_secs(90),
            trend: Duration::ZERO,
        };
        let mut clocks = TierTimers::new(&periods, now);
        let at = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(
            clocks.take_due_tiers(now),
            [Tier::Working, Tier::Performing]
        );
        assert_eq!(clocks.take_due_tiers(at(59)), []);
        assert_eq!(clocks.next_due(), Some(at(60)));
        assert_eq!(clocks.take_due_tiers(at(61)), [Tier::Working]);
        assert_eq!(clocks.take_due_tiers(at(95)), [Tier::Performing]);
        clocks.hurry_tier(Tier::Working, at(96));
        assert_eq!(clocks.take_due_tiers(at(96)), [Tier::Working]);
        clocks.make_due(at(97));
        assert_eq!(
            clocks.take_due_tiers(at(97)),
            [Tier::Working, Tier::Performing]
        );
    }
}
