//! Checks of counters whose growth counts, not their value.

use std::{collections::BTreeMap, time::Duration};

use config::Thresholds;
use model::Trend;

use super::CheckResult;
use crate::{Check, Now};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Limit of values that are kept of a counter.
const MOST: usize = 64;

/// Counters of the last readings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::record) struct ReadingCounters {
    /// Errors of direct links to other cards, as last read.
    pub(in crate::record) link_errors: Option<u64>,
    /// Values of the last hour by check, the oldest first, each with the uptime of its reading.
    trends: BTreeMap<Check, Vec<(Duration, u64)>>,
}

/// Growth of a counter over a time.
#[derive(Clone, Copy, Debug)]
struct CounterGrowth {
    by: u64,
    over: Duration,
}

// === impl ReadingCounters ===

impl ReadingCounters {
    /// Builds the counters after a restart: only the link errors are saved.
    pub(in crate::record) fn from_link_errors(link_errors: Option<u64>) -> Self {
        Self {
            link_errors,
            trends: BTreeMap::new(),
        }
    }

    /// Checks the link errors against the reading before. The first reading decides nothing.
    pub(super) fn compare_links(
        &mut self,
        errors: Option<u64>,
        thresholds: &Thresholds,
    ) -> CheckResult {
        let Some(errors) = errors else {
            return CheckResult::Unread;
        };
        match self.link_errors.replace(errors) {
            None => CheckResult::Undecided,
            Some(before) if errors.saturating_sub(before) > u64::from(thresholds.link_errors) => {
                let new = errors - before;
                CheckResult::Failed(format!("link errors since the reading before: {new}"))
            }
            Some(_) => CheckResult::Passed,
        }
    }

    /// Makes the checks of the tier *trend*.
    pub(super) fn check_trend(
        &mut self,
        values: &Trend,
        thresholds: &Thresholds,
        now: Now,
    ) -> Vec<(Check, CheckResult)> {
        let mut rate = |check: Check, value, limit, what: &str| {
            let growth = self.growth(&check, value, now);
            (check, grown(value, growth, limit, what))
        };
        let limits = thresholds;
        let mut findings = vec![
            rate(
                Check::EccCorrectedRate,
                values.ecc_corrected,
                limits.ecc_corrected_per_hour,
                "repaired memory errors",
            ),
            rate(
                Check::RepairRate,
                values.repaired_rows,
                limits.repaired_rows_per_hour,
                "repaired memory rows",
            ),
            rate(
                Check::ReplayRate,
                values.pcie_replays,
                limits.pcie_replays_per_hour,
                "PCIe replays",
            ),
        ];
        let energy = values.energy_millijoules;
        let growth = self.growth(&Check::Power, energy, now);
        findings.push((Check::Power, check_power(energy, growth, limits)));
        findings
    }

    /// Takes in a value and returns the growth within the last hour, as far as values are known.
    /// `None` before the second value.
    fn growth(&mut self, check: &Check, value: Option<u64>, now: Now) -> Option<CounterGrowth> {
        let value = value?;
        let values = self.trends.entry(check.clone()).or_default();
        // A counter that fell was reset, by a reset of the card or by an operator; PCIe replays
        // also wrap (nvmlDeviceGetPcieReplayCounter is 32 bits wide). Older values say nothing
        // then.
        if values.last().is_some_and(|(_, last)| value < *last) {
            values.clear();
        }
        values.retain(|(at, _)| now.uptime.saturating_sub(*at) <= HOUR);
        if values.len() == MOST {
            // The oldest value stays, so that the growth still covers the whole hour.
            values.remove(1);
        }
        values.push((now.uptime, value));
        match values.as_slice() {
            [(at, first), .., (_, last)] => Some(CounterGrowth {
                by: last - first,
                over: now.uptime.saturating_sub(*at),
            }),
            _ => None,
        }
    }
}

/// Checks the growth of a counter against a limit per hour. Passes if there is no limit.
fn grown(
    value: Option<u64>,
    growth: Option<CounterGrowth>,
    limit: Option<u32>,
    what: &str,
) -> CheckResult {
    match (value, limit, growth) {
        (_, None, _) => CheckResult::Passed,
        (None, ..) => CheckResult::Unread,
        (_, _, None) => CheckResult::Undecided,
        (_, Some(limit), Some(CounterGrowth { by, over })) if by > u64::from(limit) => {
            let minutes = over.as_secs().div_ceil(60);
            CheckResult::Failed(format!(
                "{what}: {by} in {minutes} min, and the limit is {limit} in an hour"
            ))
        }
        _ => CheckResult::Passed,
    }
}

/// Checks the mean power: energy over time. Undecided until `mean_time` is covered.
fn check_power(
    value: Option<u64>,
    growth: Option<CounterGrowth>,
    limits: &Thresholds,
) -> CheckResult {
    let Some(limit) = limits.mean_watts else {
        return CheckResult::Passed;
    };
    if value.is_none() {
        return CheckResult::Unread;
    }
    let Some(growth) = growth.filter(|growth| growth.over >= limits.mean_time) else {
        return CheckResult::Undecided;
    };
    let millis = u64::try_from(growth.over.as_millis()).unwrap_or(u64::MAX);
    // Millijoules per millisecond are watts.
    let watts = growth.by / millis.max(1);
    match watts > u64::from(limit) {
        true => CheckResult::Failed(format!(
            "a mean power of {watts} W, and the limit is {limit} W"
        )),
        false => CheckResult::Passed,
    }
}
